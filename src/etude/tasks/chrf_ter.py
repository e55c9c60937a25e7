"""chrF (Popović 2015) and TER (Snover et al. 2006) as sacreBLEU computes them, with its signatures."""

from collections.abc import Sequence
from typing import Any

from etude.tasks.bleu import score


def chrf(hypotheses: Sequence[str], references: Sequence[str], char_order: int, word_order: int) -> dict[str, Any]:
    """Compute corpus chrF, 0 to 100, of plain text.

    Args:
        hypotheses, references: line by line; several references of a line have tabs between them.
        char_order: the longest n-gram of characters.
        word_order: the longest n-gram of words; 0: n-grams of words are not counted.

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    from sacrebleu import CHRF

    return score("chrF", CHRF(char_order=char_order, word_order=word_order), hypotheses, references)


def ter(hypotheses: Sequence[str], references: Sequence[str], normalized: bool, case_sensitive: bool) -> dict[str, Any]:
    """Compute corpus TER of plain text, in edits per hundred words of the reference; lower is better.

    Args:
        hypotheses, references: line by line; several references of a line have tabs between them.
        normalized: whether punctuation is split from words.
        case_sensitive: whether case counts.

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    from sacrebleu import TER

    return score("TER", TER(normalized=normalized, case_sensitive=case_sensitive), hypotheses, references)
