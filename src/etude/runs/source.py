"""Read a source file without importing it: the definition of each top-level name, and the names it depends on."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Definition:
    """The definition of a top-level name.

    Attributes:
        text: its syntax tree without docstrings; comments and formatting are not part of it.
        needs: the full names it refers to, imported ones and those of its own module.
    """

    text: str
    needs: frozenset[str]


class Source:
    """The source of one module.

    Args:
        module: its full name.
        file: its source file.
    """

    def __init__(self, module: str, file: Path) -> None:
        self.module = module
        self._package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        strip = _StripNoOps()
        tree = strip.visit(ast.parse(file.read_bytes()))
        self._imports: dict[str, set[str]] = {}
        for node in strip.imports:
            for name, full in self._read_import(node):
                self._imports.setdefault(name, set()).add(full)
        self._bound: dict[str, list[ast.stmt]] = {}
        self._loose: list[ast.stmt] = []
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            names = set(_names_bound(statement))
            for name in names:
                self._bound.setdefault(name, []).append(statement)
            if not names:
                self._loose.append(statement)

    @property
    def names(self) -> list[str]:
        """The top-level names that the module defines."""
        return list(self._bound)

    def definition(self, name: str) -> Definition | None:
        """Return the definition of `name`, or where it is imported from; None if the module has no such name."""
        if name in self._bound:
            return self._read(self._bound[name])
        return Definition("", frozenset(self._imports[name])) if name in self._imports else None

    @cached_property
    def on_import(self) -> Definition:
        """The statements that run on import and bind no name, such as a registration; with star imports."""
        read = self._read(self._loose)
        return Definition(read.text, read.needs | self._imports.get("*", set()))

    def _read(self, statements: Iterable[ast.stmt]) -> Definition:
        chains = {chain for statement in statements for chain in _chains(statement)}
        needs = {full for chain in chains for full in self._full_names(chain)}
        return Definition(_dump(list(statements)), frozenset(needs))

    def _full_names(self, chain: str) -> Iterator[str]:
        """Yield the full names of a chain such as `nn.Linear`; none for a local name or a builtin."""
        first, dot, rest = chain.partition(".")
        if first in self._bound:
            yield f"{self.module}.{first}"
        for module in self._imports.get(first, ()):
            yield f"{module}{dot}{rest}"

    def _read_import(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        """Yield each name that an import statement binds, with its full name."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        else:
            above = self._package.split(".")[: -node.level + 1 or None] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield alias.asname or alias.name, module if alias.name == "*" else f"{module}.{alias.name}"


class _StripNoOps(ast.NodeTransformer):
    """Removes what has no effect on import: docstrings, `pass`, and blocks for type checking or `__main__`.

    Attributes:
        imports: the import statements among what is left.
    """

    def __init__(self) -> None:
        self.imports: list[ast.Import | ast.ImportFrom] = []

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # expressions contain no statements

    def visit_Import(self, node: ast.Import) -> ast.Import:
        self.imports.append(node)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        self.imports.append(node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'"):
            return [self.visit(statement) for statement in node.orelse]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_Pass(self, node: ast.Pass) -> None:
        return None


def _dump(node: Any) -> str:
    """Write a syntax tree as text that is the same for every version of Python: empty fields are left out."""
    if isinstance(node, list):
        return f"[{' '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [f"{name}={_dump(value)}" for name, value in ast.iter_fields(node) if value not in (None, [])]
    return f"{type(node).__name__}({' '.join(fields)})"


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement binds, also within an `if` or a `try`."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _chains(node: ast.AST) -> Iterator[str]:
    """Yield every name that is read, with its attributes: `build.model` for `build.model(config)`."""
    todo = [node]
    while todo:
        inner, attributes = todo.pop(), []
        while isinstance(inner, ast.Attribute):
            attributes.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield ".".join([inner.id, *reversed(attributes)])
        else:
            todo += ast.iter_child_nodes(inner)
