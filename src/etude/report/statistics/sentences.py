"""Two arms compared at the level of sentences: would these very runs differ on other sentences as well?

Such tests take the trained models as given. A seed that was lucky is lucky on every sentence, so they often call the
difference between two seeds of one arm significant; no star should hang on them alone. See `combined.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from etude.errors import UserError
from etude.report.statistics.difference import Comparison
from etude.report.statistics.scores import Interval, Scores
from etude.tasks.bleu import refuse_unequal
from etude.tasks.bleu_sums import corpus_bleu, sums

SEED = 12345  # sacreBLEU's; with equal numbers both draw the same sentences
ROUNDING = 1e-9  # points of BLEU; a mean over the same runs in another order may differ by less
_BLOCK = 1000  # samples that are turned into numbers at a time; bounds the memory


@dataclass(frozen=True, eq=False)
class Counts:
    """What each sentence of a test set brings to the corpus BLEU of each run of an arm.

    `counts` are (R, N, 10) for R runs and N sentences, whole numbers: words of the translation, words of the reference,
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
    """Count n-grams as sacreBLEU does by default: cased, 13a tokens, one reference a sentence.

    `runs` are the translations of each run of the arm, plain and detokenised, as many lines as `references`.

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
    return Counts(arm, sums(runs, references))


def refuse_unpaired(arm: Counts, base: Counts) -> None:
    """Only translations of the same sentences can be compared sentence by sentence; raises UserError for others."""
    if arm.sentences != base.sentences or (arm.counts[0, :, 1] != base.counts[0, :, 1]).any():
        raise UserError(
            f"{arm.arm} ({arm.sentences} sentences) and {base.arm} ({base.sentences}) were tested on different "
            "sentences and cannot be compared; evaluate both on the same test set"
        )


@dataclass(frozen=True, eq=False)
class Resampled:
    """The corpus BLEU of every run of an arm on resamples of the test set."""

    counts: Counts  # what was resampled
    bleu: NDArray[np.float64]  # (R, S), 0 to 100; column s is the same sentences for every run and every arm
    seed: int  # what the sentences were drawn with


def resample(counts: Counts, samples: int = 1000, seed: int = SEED) -> Resampled:
    """Draw as many sentences as there are, with replacement, `samples` times, and score every run on each draw."""
    sentences = counts.sentences
    drawn = np.random.default_rng(seed).integers(sentences, size=(samples, sentences))
    drawn += sentences * np.arange(samples)[:, None]
    times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)  # each sentence was drawn
    sums = np.tensordot(times.astype(np.float64), counts.counts, axes=(1, 1))  # (S, R, 10)
    return Resampled(counts, corpus_bleu(sums).T, seed)


def paired_bootstrap(arm: Resampled, base: Resampled, level: float = 0.95) -> Comparison:
    """Paired bootstrap resampling (Koehn 2004) of the difference of mean corpus BLEU.

    With one run each it is Koehn's; with several, the mean over the runs of an arm is what is compared. The interval
    holds the middle of the resampled differences. p is two-sided: how often a resampled difference strays from the mean
    of them all by the difference seen or more (the shift method: Noreen 1989; Riezler & Maxwell 2005).
    sacreBLEU's `paired-bs` takes absolute values before it centres, which makes its p of a clear difference the
    one-sided one, half of this: under no difference it falls below 0.05 one time in ten.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: they were not resampled alike.
    """
    difference = arm.counts.scores.mean - base.counts.scores.mean
    resampled = paired_differences(arm, base)
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    strayed = abs(resampled - resampled.mean()) > abs(difference) - ROUNDING
    p = (1 + int(strayed.sum())) / (1 + len(resampled))
    return Comparison(difference, Interval(float(low), float(high)), p)


def paired_differences(arm: Resampled, base: Resampled) -> NDArray[np.float64]:
    """(S,) mean BLEU of the arm less that of base on each resample; raises as `paired_bootstrap` does."""
    refuse_unlike(arm, base)
    return arm.bleu.mean(axis=0) - base.bleu.mean(axis=0)


def approximate_randomisation(arm: Counts, base: Counts, samples: int = 10_000, seed: int = SEED) -> float:
    """Approximate randomisation (Noreen 1989; Riezler & Maxwell 2005) of the difference of mean corpus BLEU.

    If arm and base were alike, their translations of a sentence could change places. p, two-sided, is how often a
    random exchange, each sentence tossed for, makes a difference at least as large as the one seen, which counts as one
    of them. Equal translations thus give 1, where sacreBLEU's `paired-ar` gives its smallest value.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: the arms have different numbers of runs, whose translations cannot change places.
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
    """Only what was resampled alike can be compared sample by sample; raises ValueError for other draws."""
    refuse_unpaired(arm.counts, base.counts)
    if arm.seed != base.seed or arm.bleu.shape[1] != base.bleu.shape[1]:
        raise ValueError(f"{arm.counts.arm} and {base.counts.arm} were resampled with other seeds or sample counts")
