"""BLEU as sacreBLEU computes it, with the signature that says how (Post 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass

from etude.errors import UserError


@dataclass(frozen=True)
class Bleu:
    """A corpus score that others can check.

    Attributes:
        score: 0 to 100.
        signature: sacreBLEU's own words for what was computed, its version included.
        sentences: lines compared.
    """

    score: float
    signature: str
    sentences: int


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Bleu:
    """Corpus BLEU of plain, detokenised text: cased, 13a tokens, one reference a line.

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    import sacrebleu

    refuse_unequal("BLEU", hypotheses, references)
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(hypotheses, [references]).score
    return Bleu(score, str(metric.get_signature()), len(hypotheses))


def refuse_unequal(metric: str, hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Nothing is scored by a metric, which is called so, but lines against as many lines.

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
