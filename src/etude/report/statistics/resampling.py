"""Two arms compared at the level of sentences: would these very runs differ on other sentences as well?

Such tests take the trained models as given. A seed that was lucky is lucky on every sentence, so they often call the
difference between two seeds of one arm significant; no star should hang on them alone. See `combined.py`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.report.statistics.difference import Comparison
from etude.report.statistics.intervals import Interval
from etude.report.statistics.sentences import Counts, refuse_unpaired
from etude.tasks.bleu_sums import corpus_bleu

SEED = 12345  # sacreBLEU's; with equal numbers both draw the same sentences
ROUNDING = 1e-9  # points of BLEU; a mean over the same runs in another order may differ by less
_BLOCK = 1000  # samples that are turned into numbers at a time; bounds the memory


@dataclass(frozen=True, eq=False)
class Resampled:
    """The corpus BLEU of every run of an arm on resamples of the test set.

    Attributes:
        counts: what was resampled.
        bleu: (R, S) for R runs and S resamples, 0 to 100. Column s is the same sentences for every run and every arm.
        seed: what the sentences were drawn with.
    """

    counts: Counts
    bleu: NDArray[np.float64]
    seed: int


def resample(counts: Counts, samples: int = 1000, seed: int = SEED) -> Resampled:
    """Draws as many sentences as there are, with replacement, `samples` times, and scores every run on each draw."""
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
    """Only what was resampled alike can be compared sample by sample.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: the draws were others.
    """
    refuse_unpaired(arm.counts, base.counts)
    if arm.seed != base.seed or arm.bleu.shape[1] != base.bleu.shape[1]:
        raise ValueError(f"{arm.counts.arm} and {base.counts.arm} were resampled with other seeds or sample counts")
