"""The translations of the runs of an arm, as what each sentence brings to their BLEU."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from etude.errors import UserError
from etude.report.statistics.scores import Scores
from etude.tasks.bleu import refuse_unequal
from etude.tasks.bleu_sums import corpus_bleu, sums


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
    if not runs:
        raise UserError(f"{arm} has no translations: nothing can be said of an arm without a finished run")
    for hypotheses in runs:
        try:
            refuse_unequal(hypotheses, references)
        except UserError as error:
            raise UserError(f"{arm}: {error}") from None
    return Counts(arm, sums(runs, references))


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
