"""Constituency trees: read from Penn-style brackets, linearised to a line of text, and restored from such a line.

A line holds everything but the words (Vinyals, Kaiser et al. 2015, "Grammar as a Foreign Language", section 3): depth
first, a constituent is `(NP ... )NP`, with its label at both ends, and a word is its part-of-speech tag. All tags are
normalised to XX, except those of punctuation, by which the scorer leaves it out. The top has no brackets:

    (S (NP XX )NP (VP XX (NP XX XX )NP )VP . )S

Line and words together restore the tree: the k-th tag stands for the k-th word.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from etude.data.lines import read_lines
from etude.errors import UserError

TOP = "TOP"
PUNCTUATION = frozenset({",", ":", "``", "''", "."})
"""The tags of the Penn treebank that EVALB's COLLINS.prm leaves out; those of brackets are not among them."""

_TOPS = ("", "TOP", "ROOT", "S1")
_EMPTY = "-NONE-"
_TOKEN = re.compile(r"[()]|[^\s()]+")
_LINE_TOKEN = re.compile(r"[()]?[^\s()]+|[()]")
_FUNCTION = re.compile(r"(?<=.)[-=|].*")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A word and its part-of-speech tag."""

    tag: str
    word: str


@dataclass(frozen=True, slots=True)
class Tree:
    """A constituent: its label and its children."""

    label: str
    children: "tuple[Tree | Leaf, ...]"

    @property
    def leaves(self) -> list[Leaf]:
        """The leaves, from left to right."""
        return [leaf for child in self.children for leaf in (child.leaves if isinstance(child, Tree) else [child])]


def read_trees(file: Path) -> Iterator[Tree]:
    """Read the trees of a file, `( (S (NP (DT the) (NN cat)) (VP (VBZ sleeps))))`, each on one line or on several.

    Raises:
        UserError: as `read_lines`; or a tree does not close, or is malformed. The message names file and line.
    """
    opened: list[tuple[int, list[str | Tree | Leaf]]] = []  # the line where a bracket opens, and its content so far
    for number, line in enumerate(read_lines(file), start=1):
        for token in _TOKEN.findall(line):
            if token == "(":
                opened.append((number, []))
            elif not opened:
                raise UserError(f"{file}, line {number}: {token!r} stands outside of any tree; check the brackets")
            elif token == ")":
                start, parts = opened.pop()
                node = _make_node(parts)
                if node is None or (isinstance(node, Leaf) and not opened):
                    raise UserError(
                        f"{file}, line {start}: the bracket that opens here is neither (TAG word) nor (LABEL (...) ...)"
                    )
                if isinstance(node, Tree) and not opened:
                    yield node
                else:
                    opened[-1][1].append(node)
            else:
                opened[-1][1].append(token)
    if opened:
        raise UserError(f"{file}, line {opened[0][0]}: the tree that begins here does not close; add what it lacks")


def normalize(tree: Tree) -> Tree | None:
    """Normalise a tree for training and scoring: a TOP, no empty elements, no functional tags.

    `-NONE-` is removed, with each constituent that has nothing else; NP-SBJ-1 and NP=2 become NP, PRT|ADVP becomes PRT.

    Returns:
        None if nothing is left.
    """
    inner = Tree(TOP, tree.children if tree.label in _TOPS else (tree,))
    kept = _normalize_node(inner)
    return kept if isinstance(kept, Tree) else None


def words(tree: Tree) -> list[str]:
    """Return the words of a tree, from left to right."""
    return [leaf.word for leaf in tree.leaves]


def linearize(tree: Tree) -> str:
    """Convert a normalised tree to its line."""
    return " ".join(token for child in tree.children for token in _node_tokens(child))


def delinearize(line: str, words: Sequence[str] = ()) -> Tree:
    """Convert a line to a tree, repairing a malformed line, such as a model may generate.

    A closing bracket closes the innermost open one of its label and all within it; it is dropped if there is none.
    Brackets still open at the end are closed there. Brackets without words are dropped.

    Args:
        line: as `linearize` writes it, or similar.
        words: the words that the tags stand for; a tag beyond the last word gets the word "".
    """
    opened: list[tuple[str, list[Tree | Leaf]]] = [(TOP, [])]
    rest = iter(words)
    for token in _LINE_TOKEN.findall(line):
        if token[0] == "(":
            opened.append((token[1:], []))
        elif token[0] != ")":
            opened[-1][1].append(Leaf(token, next(rest, "")))
        elif token[1:] in [label for label, _ in opened[1:]]:
            while _close(opened) != token[1:]:
                pass
    while len(opened) > 1:
        _close(opened)
    return Tree(TOP, tuple(opened[0][1]))


def _close(opened: list[tuple[str, list[Tree | Leaf]]]) -> str:
    """Close the innermost bracket and return its label."""
    label, children = opened.pop()
    if children:
        opened[-1][1].append(Tree(label, tuple(children)))
    return label


def _make_node(parts: list[str | Tree | Leaf]) -> Tree | Leaf | None:
    """Make a node from the content of a bracket, or None if it is malformed; only a top has no label."""
    match parts:
        case [str(tag), str(word)]:
            return Leaf(tag, word)
        case [str(label), *rest] if rest:
            children = rest
        case _:
            label, children = "", parts
    trees = tuple(child for child in children if not isinstance(child, str))
    return Tree(label, trees) if trees and len(trees) == len(children) else None


def _normalize_node(node: Tree | Leaf) -> Tree | Leaf | None:
    if isinstance(node, Leaf):
        return None if node.tag == _EMPTY else node
    children = tuple(kept for child in node.children if (kept := _normalize_node(child)) is not None)
    return Tree(_FUNCTION.sub("", node.label), children) if children else None


def _node_tokens(node: Tree | Leaf) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield node.tag if node.tag in PUNCTUATION else "XX"
        return
    yield f"({node.label}"
    for child in node.children:
        yield from _node_tokens(child)
    yield f"){node.label}"
