"""BLEU taken apart into what each sentence brings, so that corpora can be put together anew without scoring again.

Corpus BLEU needs ten sums over sentences (Papineni et al. 2002, section 2.3): the lengths of translation and reference,
and for n = 1 to 4 how many n-grams match and how many there are. Resampling sentences is adding up their ten numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from etude.errors import UserError
from etude.evaluation.bleu import refuse_unequal
from etude.report.statistics.scores import Scores


@dataclass(frozen=True, eq=False)
class Counts:
    """What each sentence of a test set brings to the corpus BLEU of each run of an arm.

    Attributes:
        arm: its name.
        counts: (R, N, 10) for R runs and N sentences, whole numbers: words of the translation, words of the reference,
            matching 1- to 4-grams, 1- to 4-grams of the translation.
    """

    arm: str
    counts: NDArray[np.float64]

    @property
    def runs(self) -> int:
        """R."""
        return self.counts.shape[0]

    @property
    def sentences(self) -> int:
        """N."""
        return self.counts.shape[1]

    @cached_property
    def bleu(self) -> NDArray[np.float64]:
        """(R,) the corpus BLEU of each run, 0 to 100: what sacreBLEU gives for the same text."""
        return corpus_bleu(self.counts.sum(axis=1))

    @property
    def scores(self) -> Scores:
        """The same as scores of an arm."""
        return Scores(self.arm, self.bleu.tolist())


def count(arm: str, runs: Sequence[Sequence[str]], references: Sequence[str]) -> Counts:
    """Counts n-grams as sacreBLEU does by default: cased, 13a tokens, one reference a sentence.

    Args:
        arm: its name.
        runs: the translations of each run, plain and detokenised, a line a sentence.
        references: as many lines.

    Raises:
        UserError: there is no run or no line, or the line counts differ.
    """
    from sacrebleu import BLEU

    if not runs:
        raise UserError(f"{arm} has no translations: nothing can be said of an arm without a finished run")
    metric = BLEU(effective_order=True)  # what sacreBLEU wants to be asked for single sentences; it counts the same
    seen: dict[tuple[str, str], list[int]] = {}  # runs of an arm agree on many a sentence
    for hypotheses in runs:
        try:
            refuse_unequal(hypotheses, references)
        except UserError as error:
            raise UserError(f"{arm}: {error}") from None
        for pair in zip(hypotheses, references, strict=True):
            if pair not in seen:
                score = metric.sentence_score(pair[0], [pair[1]])
                seen[pair] = [score.sys_len, score.ref_len, *score.counts, *score.totals]
    rows = [[seen[pair] for pair in zip(hypotheses, references, strict=True)] for hypotheses in runs]
    return Counts(arm, np.array(rows, dtype=np.float64))


def corpus_bleu(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """BLEU of corpora whose counts were added up, smoothed as sacreBLEU does by default.

    The k-th order without a match counts as 1 / 2^k matches (Chen & Cherry 2014, method 3); a corpus with no match at
    all, or without an n-gram of every order, scores 0.

    Args:
        sums: (..., 10) as in `Counts`.

    Returns:
        (...) 0 to 100.
    """
    translated, referenced, matches, totals = sums[..., 0], sums[..., 1], sums[..., 2:6], sums[..., 6:]
    missed = matches == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = np.where(missed, 0.5 ** missed.cumsum(axis=-1), matches) / totals
        brevity = np.exp(np.minimum(0, 1 - referenced / translated))
        scores = 100 * brevity * np.exp(np.log(precisions).mean(axis=-1))
    return np.where((totals > 0).all(axis=-1) & ~missed.all(axis=-1), scores, 0.0)


def refuse_unpaired(arm: Counts, base: Counts) -> None:
    """Only translations of the same sentences can be compared sentence by sentence.

    Raises:
        UserError: the arms were tested on different sentences.
    """
    if arm.sentences != base.sentences or (arm.counts[0, :, 1] != base.counts[0, :, 1]).any():
        raise UserError(
            f"{arm.arm} ({arm.sentences} sentences) and {base.arm} ({base.sentences}) were tested on different "
            "sentences and cannot be compared; evaluate both on the same test set"
        )
