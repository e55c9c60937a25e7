"""Compare two arms over sentences: would the same runs differ on other sentences as well?

These tests take the trained models as given. A lucky seed is lucky on every sentence, so they often call the difference
between two seeds of the same arm significant. They should never decide a star alone; see `combined.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.errors import UserError
from etude.report.statistics.difference import Comparison
from etude.report.statistics.scores import Interval, Scores
from etude.store.identity import digest
from etude.tasks.bleu import refuse_unequal
from etude.tasks.bleu_sums import corpus_bleu, sums

SEED = 12345  # the default of sacreBLEU, so that both draw the same sentences
ROUNDING = 1e-9  # BLEU points: an upper bound of rounding errors, such as those from the order of a sum
_BLOCK = 1000  # samples that are computed at a time, to bound the memory


@dataclass(frozen=True, eq=False)
class Counts:
    """The statistics from which the corpus BLEU of each run of an arm is computed, for each sentence.

    `counts` is (R, N, 10) for R runs and N sentences and holds whole numbers: words of the translation, words of the
    reference, matching 1- to 4-grams, 1- to 4-grams of the translation.
    """

    arm: str
    counts: NDArray[np.float64]
    references: str = ""  # a digest of them where a sentence has several, of which the closest length counts

    @property
    def runs(self) -> int:
        """R, the number of runs."""
        return self.counts.shape[0]

    @property
    def sentences(self) -> int:
        """N, the number of sentences."""
        return self.counts.shape[1]

    @cached_property
    def bleu(self) -> NDArray[np.float64]:
        """(R,) the corpus BLEU of each run, 0 to 100, equal to sacreBLEU's."""
        return corpus_bleu(self.counts.sum(axis=1))

    @property
    def scores(self) -> Scores:
        """The corpus BLEU of each run as `Scores`."""
        return Scores(self.arm, self.bleu.tolist())


def count(arm: str, runs: Sequence[Sequence[str]], references: Sequence[str], **options: Any) -> Counts:
    """Count n-grams as sacreBLEU does.

    Args:
        arm: the name of the arm.
        runs: the detokenised translations of each run, as many lines as `references`.
        references: one line per sentence, with tabs between several references.
        options: how lines are compared; see `etude.tasks.bleu_sums.sums`.

    Raises:
        UserError: there is no run or no line, or the line counts differ.
    """
    if not runs:
        raise UserError(f"{arm} has no translations: nothing can be said of an arm without a finished run")
    for hypotheses in runs:
        try:
            refuse_unequal("BLEU", hypotheses, references)
        except UserError as error:
            raise UserError(f"{arm}: {error}") from None
    several = any("\t" in line for line in references)
    return Counts(arm, sums(runs, references, **options), digest([*references]) if several else "")


def refuse_unpaired(arm: Counts, base: Counts) -> None:
    """Check that two arms translated the same sentences.

    Raises:
        UserError: the number of sentences or the lengths of the references differ; of several, the references.
    """
    several = bool(arm.references or base.references)
    if (
        arm.sentences != base.sentences
        or arm.references != base.references
        or (not several and (arm.counts[0, :, 1] != base.counts[0, :, 1]).any())
    ):
        raise UserError(
            f"{arm.arm} ({arm.sentences} sentences) and {base.arm} ({base.sentences}) were tested on different "
            "sentences and cannot be compared; evaluate both on the same test set"
        )


@dataclass(frozen=True, eq=False)
class Resampled:
    """The corpus BLEU of every run of an arm on resamples of the test set."""

    counts: Counts  # what was resampled
    bleu: NDArray[np.float64]  # (R, S), 0 to 100; column s is on the same sentences for every run and every arm
    seed: int  # with which the sentences were drawn


def resample(counts: Counts, samples: int = 1000, seed: int = SEED) -> Resampled:
    """Resample the test set `samples` times, with replacement, and compute the BLEU of every run on each resample."""
    sentences = counts.sentences
    drawn = np.random.default_rng(seed).integers(sentences, size=(samples, sentences))
    drawn += sentences * np.arange(samples)[:, None]
    times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)  # (S, N) how often each was drawn
    sums = np.tensordot(times.astype(np.float64), counts.counts, axes=(1, 1))  # (S, R, 10)
    return Resampled(counts, corpus_bleu(sums).T, seed)


def paired_bootstrap(arm: Resampled, base: Resampled, level: float = 0.95) -> Comparison:
    """Test the difference of mean corpus BLEU by paired bootstrap resampling (Koehn 2004).

    With one run per arm it is Koehn's test; with several, the means over runs are compared. The interval holds the
    central part, `level`, of the resampled differences. p is two-sided: how often a resampled difference is as far from
    the mean of all resampled differences as the observed one is from zero, or farther (the shift method: Noreen 1989;
    Riezler & Maxwell 2005). sacreBLEU's `paired-bs` takes absolute values before it centres. So for a clear difference
    its p is one-sided, half of this one, and without a difference it is below 0.05 one time in ten.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: they were resampled with different seeds or sample counts.
    """
    difference = arm.counts.scores.mean - base.counts.scores.mean
    resampled = paired_differences(arm, base)
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    strayed = abs(resampled - resampled.mean()) > abs(difference) - ROUNDING
    p = (1 + int(strayed.sum())) / (1 + len(resampled))
    return Comparison(difference, Interval(float(low), float(high)), p)


def paired_differences(arm: Resampled, base: Resampled) -> NDArray[np.float64]:
    """Compute the mean BLEU of the arm minus the base's on each resample, (S,); raises as `paired_bootstrap` does."""
    refuse_unlike(arm, base)
    return arm.bleu.mean(axis=0) - base.bleu.mean(axis=0)


def approximate_randomisation(arm: Counts, base: Counts, samples: int = 10_000, seed: int = SEED) -> float:
    """Test the difference of mean corpus BLEU by approximate randomisation (Noreen 1989; Riezler & Maxwell 2005).

    If arm and base were equal, their translations of a sentence could be exchanged. Each sample exchanges every
    sentence with a chance of one half. p, two-sided, is how often this gives a difference at least as large as the
    observed one, which counts as one of the samples. So equal translations give 1, where sacreBLEU's `paired-ar` gives
    its smallest value.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: the arms have different numbers of runs, so that their translations cannot be exchanged.
    """
    refuse_unpaired(arm, base)
    if arm.runs != base.runs:
        raise ValueError(f"{arm.arm} has {arm.runs} runs and {base.arm} {base.runs}: give as many of both")
    tossed = np.random.default_rng(seed).integers(2, size=(samples, arm.sentences), dtype=bool)
    gaps = arm.counts - base.counts
    seen = abs(arm.bleu.mean() - base.bleu.mean())
    as_large = 1
    for start in range(0, samples, _BLOCK):
        moved = np.tensordot(tossed[start : start + _BLOCK].astype(np.float64), gaps, axes=(1, 1))  # (block, R, 10)
        ours = corpus_bleu(arm.counts.sum(axis=1) - moved).mean(axis=-1)
        theirs = corpus_bleu(base.counts.sum(axis=1) + moved).mean(axis=-1)
        as_large += int((abs(ours - theirs) > seen - ROUNDING).sum())
    return as_large / (samples + 1)


def refuse_unlike(arm: Resampled, base: Resampled) -> None:
    """Check that two arms were resampled with the same sentences.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: the seeds or sample counts differ.
    """
    refuse_unpaired(arm.counts, base.counts)
    if arm.seed != base.seed or arm.bleu.shape[1] != base.bleu.shape[1]:
        raise ValueError(f"{arm.counts.arm} and {base.counts.arm} were resampled with other seeds or sample counts")
