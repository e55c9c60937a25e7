"""Labelled bracket F1 of constituency trees, as EVALB computes it with COLLINS.prm (Sekine and Collins 1997).

Hypotheses and references are lines as `etude.data.trees.linearize` writes them. A bracket is a label and the words it
spans; it counts as often as it stands there. Punctuation (`,`, `:`, quotes and `.`, by their tags) is no word, what
holds nothing else no bracket, and the top neither; ADVP and PRT are one label. Matched brackets are added up over all
sentences before precision and recall are taken.

EVALB is given words, and stops or skips where it cannot go on; here
- a line that stands for no tree is mended (`etude.data.trees.delinearize`);
- the tags are those of the reference, so that a wrong tag moves no word into or out of the punctuation;
- where a hypothesis has another number of words than its reference, nothing matches and all its brackets count: EVALB
  leaves such a sentence out, which makes a model better for each line that it breaks off.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from etude.data.trees import PUNCTUATION, TOP, Leaf, Tree, delinearize
from etude.errors import UserError

Brackets = Counter[tuple[str, int, int]]
"""How often each bracket stands in a tree: its label, and where its words begin and end, punctuation not counted."""

_DELETED = PUNCTUATION | {TOP, "-NONE-"}
_EQUAL = {"PRT": "ADVP"}
_SIGNATURE = "EVALB|COLLINS.prm|tags:reference|unequal:wrong"


def bracket_f1(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Compute corpus bracket F1, 0 to 100.

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    if len(hypotheses) != len(references) or not references:
        raise UserError(
            f"bracket F1 of {len(hypotheses)} trees and {len(references)} references is not defined: "
            "give one reference for each tree, and at least one"
        )
    matched, gold, test = (sum(counts) for counts in zip(*map(count_brackets, hypotheses, references), strict=True))
    return {"score": 200 * matched / (gold + test) if matched else 0.0, "signature": _SIGNATURE}


def count_brackets(hypothesis: str, reference: str) -> tuple[int, int, int]:
    """Count the brackets that match, those of the reference, and those of the hypothesis."""
    ours, theirs = delinearize(hypothesis), delinearize(reference)
    tags, own = ([leaf.tag for leaf in tree.leaves] for tree in (theirs, ours))
    gold, test = brackets(theirs, tags), brackets(ours, tags if len(own) == len(tags) else own)
    matched = gold & test if len(own) == len(tags) else Brackets()
    return matched.total(), gold.total(), test.total()


def brackets(tree: Tree, tags: Iterable[str]) -> Brackets:
    """The brackets of a tree that are scored, its words tagged so."""
    before = [0, *accumulate(tag not in PUNCTUATION for tag in tags)]  # real words before each word
    found: Brackets = Counter()

    def visit(node: Tree | Leaf, start: int) -> int:
        if isinstance(node, Leaf):
            return start + 1
        end = start
        for child in node.children:
            end = visit(child, end)
        if before[start] < before[end] and node.label not in _DELETED:
            found[_EQUAL.get(node.label, node.label), before[start], before[end]] += 1
        return end

    visit(tree, 0)
    return found
