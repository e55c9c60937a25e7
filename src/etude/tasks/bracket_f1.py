"""Labelled bracket F1 of constituency trees, as EVALB computes it with COLLINS.prm (Sekine and Collins 1997).

Hypotheses and references are lines as `etude.data.trees.linearize` writes them. A bracket is a label and the words it
spans; repeated brackets are counted each time. Punctuation (`,`, `:`, quotes and `.`, by their tags) does not count as
words. Brackets of punctuation only, and the top one, are not scored. ADVP and PRT are the same label. Counts are added
up over all sentences before precision and recall are computed.

Differences from EVALB, which stops at or skips what it cannot score:
- a line that is not a tree is repaired (`etude.data.trees.delinearize`);
- the tags are those of the reference, so that a wrong tag cannot turn a word into punctuation or back;
- a hypothesis with another number of words than its reference matches nothing, and all its brackets count. EVALB leaves
  such sentences out, so that a model scores better for each tree that it does not finish.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from etude.data.trees import PUNCTUATION, TOP, Leaf, Tree, delinearize
from etude.tasks.bleu import refuse_unequal

Brackets = Counter[tuple[str, int, int]]
"""How often a tree has each bracket: its label, and the start and end of its words, punctuation not counted."""

_DELETED = PUNCTUATION | {TOP, "-NONE-"}
_EQUAL = {"PRT": "ADVP"}
_SIGNATURE = "EVALB|COLLINS.prm|tags:reference|unequal:wrong"


def bracket_f1(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Compute corpus bracket F1, 0 to 100.

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    refuse_unequal("bracket F1", hypotheses, references)
    matched, gold, test = (sum(counts) for counts in zip(*map(count_brackets, hypotheses, references), strict=True))
    return {"score": 200 * matched / (gold + test) if matched else 0.0, "signature": _SIGNATURE}


def count_brackets(hypothesis: str, reference: str) -> tuple[int, int, int]:
    """Count matching brackets, brackets of the reference, and brackets of the hypothesis."""
    ours, theirs = delinearize(hypothesis), delinearize(reference)
    tags, own = ([leaf.tag for leaf in tree.leaves] for tree in (theirs, ours))
    gold, test = brackets(theirs, tags), brackets(ours, tags if len(own) == len(tags) else own)
    matched = gold & test if len(own) == len(tags) else Brackets()
    return matched.total(), gold.total(), test.total()


def brackets(tree: Tree, tags: Iterable[str]) -> Brackets:
    """Collect the scored brackets of a tree whose words have the given tags."""
    before = [0, *accumulate(tag not in PUNCTUATION for tag in tags)]  # words before each leaf, without punctuation
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
