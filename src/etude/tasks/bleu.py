"""BLEU as sacreBLEU computes it, with its signature (Post 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass

from etude.errors import UserError


@dataclass(frozen=True)
class Bleu:
    """A corpus score, with all that is needed to compute it again.

    Attributes:
        score: 0 to 100.
        signature: sacreBLEU's description of how the score was computed, with its version.
        sentences: the number of lines compared.
    """

    score: float
    signature: str
    sentences: int


def bleu(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Bleu:
    """Compute corpus BLEU of plain, detokenised text: 13a tokens, one reference per line.

    Args:
        hypotheses, references: line by line.
        lowercase: compare both in lower case.

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    import sacrebleu

    refuse_unequal("BLEU", hypotheses, references)
    metric = sacrebleu.BLEU(lowercase=lowercase)
    score = metric.corpus_score(hypotheses, [references]).score
    return Bleu(score, str(metric.get_signature()), len(hypotheses))


def refuse_unequal(metric: str, hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Check that there are as many hypotheses as references, and at least one; `metric` is its name in messages.

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    if len(hypotheses) != len(references):
        raise UserError(
            f"{len(hypotheses)} translations cannot be compared with {len(references)} references: "
            f"{metric} needs one reference line for each translated line"
        )
    if not hypotheses:
        raise UserError(f"{metric} of no lines is not defined: give at least one translation and its reference")
