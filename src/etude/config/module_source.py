"""Find and read the source of a module without importing it: what it defines, and what it imports from others."""

import ast
import importlib.util
from importlib.machinery import PathFinder
from pathlib import Path

Definition = ast.ClassDef | ast.FunctionDef


def find_source(module: str) -> Path | None:
    """Find the file of a module without importing the packages that contain it; None if there is none."""
    first, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(first) if first else None
        for depth in range(len(rest)):
            places = spec and spec.submodule_search_locations
            spec = PathFinder.find_spec(".".join([first, *rest[: depth + 1]]), places) if places else None
    except KeyError:  # nested namespace packages (no __init__.py), whose import runs no code
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    return Path(spec.origin) if spec and spec.origin and spec.has_location else None


class ModuleSource:
    """The names at the top level of a module.

    Args:
        module: its full name.
        file: its source file.

    Attributes:
        defined: its classes and functions, by name.
        imported: the names that it imports from other modules, with their full paths.

    Raises:
        SyntaxError: the file is not Python.
    """

    def __init__(self, module: str, file: Path) -> None:
        self._tree = ast.parse(file.read_bytes(), str(file))
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        self.defined: dict[str, Definition] = {
            node.name: node for node in self._tree.body if isinstance(node, Definition)
        }
        self.imported: dict[str, str] = {}
        for node in self._tree.body:
            if isinstance(node, ast.ImportFrom):
                above = ".".join(package.split(".")[: package.count(".") + 2 - node.level]) if node.level else ""
                origin = ".".join(filter(None, [above, node.module]))
                self.imported |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}

    def may_hold(self, name: str) -> bool:
        """Return whether the module may have a name that it neither defines nor imports at the top level."""
        nodes = [*ast.walk(self._tree)]
        written = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        hidden = {node.name for node in nodes if isinstance(node, Definition | ast.alias)}
        return bool({name, "*", "__getattr__"} & (written | hidden))
