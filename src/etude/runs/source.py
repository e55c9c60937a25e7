"""A source file, read and not imported: what its top-level names stand for, and which names that needs in turn."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Definition:
    """What a name stands for.

    Attributes:
        text: its syntax tree, which knows nothing of comments and formatting, without docstrings.
        needs: the full names that occur in it, imported ones and others of its own module.
    """

    text: str
    needs: frozenset[str]


class Source:
    """One module.

    Args:
        module: its full name.
        file: where it is written.
    """

    def __init__(self, module: str, file: Path) -> None:
        self.module = module
        self._package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        tree = _Bare().visit(ast.parse(file.read_bytes()))
        self._imports: dict[str, set[str]] = {}
        for node in ast.walk(tree):
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
        """All that it defines."""
        return list(self._bound)

    def definition(self, name: str) -> Definition | None:
        """What defines `name`, or where it is imported from; None where the module does not know it."""
        if name in self._bound:
            return self._read(self._bound[name])
        return Definition("", frozenset(self._imports[name])) if name in self._imports else None

    @cached_property
    def on_import(self) -> Definition:
        """What is done whoever imports it, beside defining names: a registration, say."""
        read = self._read(self._loose)
        return Definition(read.text, read.needs | self._imports.get("*", set()))

    def _read(self, statements: Iterable[ast.stmt]) -> Definition:
        chains = {chain for statement in statements for chain in _chains(statement)}
        needs = {full for chain in chains for full in self._full(chain)}
        return Definition(_dump(list(statements)), frozenset(needs))

    def _full(self, chain: str) -> Iterator[str]:
        """What `nn.Linear` is called elsewhere; nothing for a local name or a builtin."""
        first, dot, rest = chain.partition(".")
        if first in self._bound:
            yield f"{self.module}.{first}"
        for module in self._imports.get(first, ()):
            yield f"{module}{dot}{rest}"

    def _read_import(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Names that an import brings, wherever in the file it stands, and their full ones."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        if isinstance(node, ast.ImportFrom):
            above = self._package.split(".")[: -node.level + 1 or None] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield alias.asname or alias.name, module if alias.name == "*" else f"{module}.{alias.name}"


class _Bare(ast.NodeTransformer):
    """Takes out what does nothing when the module is imported: docstrings above all."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'"):
            return [self.visit(statement) for statement in node.orelse]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_Pass(self, node: ast.Pass) -> None:
        return None


def _dump(node: Any) -> str:
    """A syntax tree in words that every version of Python chooses alike: what is empty has none."""
    if isinstance(node, list):
        return f"[{' '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [f"{name}={_dump(value)}" for name, value in ast.iter_fields(node) if value not in (None, [])]
    return f"{type(node).__name__}({' '.join(fields)})"


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    """What a top-level statement defines, under an `if` or a `try` too."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _chains(node: ast.AST) -> Iterator[str]:
    """Every name that is read, with the attributes that are asked of it: `build.model` of `build.model(config)`."""
    if isinstance(node, ast.Attribute | ast.Name):
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield ".".join([inner.id, *parts])
        else:
            yield from _chains(inner)
        return
    for child in ast.iter_child_nodes(node):
        yield from _chains(child)
