"""Compare two arms over seeds and sentences together: would other seeds on other sentences show the difference?

This is what a reader takes a star to mean. So a star is decided by `combined_test`, corrected by Holm.

False positive rates at α = 0.05 on simulated studies. Left: all variance comes from training. Right: training, its
interaction with the sentences, and the sentences themselves have equal variance:

    seeds per arm                 2            3            5            10
    combined test                 0.02  0.04   0.04  0.04   0.05  0.05   0.05  0.05
    Welch, over seeds only        0.02  0.03   0.04  0.08   0.05  0.15   0.05  0.27
    bootstrap, sentences only     1.00  0.11   1.00  0.10   1.00  0.08   1.00  0.07
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.report.statistics.difference import Comparison, differences_by_seed, t_test, unknown_difference, unknown_gap
from etude.report.statistics.scores import Scores
from etude.report.statistics.sentences import ROUNDING, Resampled, paired_differences, refuse_unlike


@dataclass(frozen=True)
class Variances:
    """Components of the variance of an arm's BLEU, in squared points."""

    seeds: float  # of one run, over seeds, on this test set: the source of a table's ±
    training: float  # the part of `seeds` that an infinite test set would leave; the rest is due to these sentences
    test_set: float  # of the mean over these runs, over test sets like this one


def variances(arm: Resampled) -> Variances:
    """Split the variance of an arm's BLEU into the variance over seeds and over test sets.

    Runs on the same test set also differ in which of its sentences they happen to get right. This interaction is
    estimated on the resamples, as the variance of each run's distance from the mean of its arm. The rest, at least
    zero, is the training variance (analysis of variance with random runs and random sentences: Searle, Casella &
    McCulloch 1992).

    Raises:
        ValueError: the arm has one run.
    """
    if arm.counts.runs < 2:
        raise ValueError(f"{arm.counts.arm} has one run, which has no variance over seeds")
    return _split(arm.bleu, arm.counts.scores)


def _split(bleu: NDArray[np.float64], scores: Scores) -> Variances:
    """Split the variance of `bleu` (R, S), of R runs on S resamples, which on the test set itself are `scores`."""
    mean = bleu.mean(axis=0)
    interaction = (bleu - mean).var(axis=1, ddof=1).sum() / (len(bleu) - 1)
    seeds = scores.variance
    return Variances(seeds, max(0.0, seeds - float(interaction)), float(mean.var(ddof=1)))


def combined_test(arm: Resampled, base: Resampled, shared: bool = False, level: float = 0.95) -> Comparison:
    """Test the difference of mean BLEU by a t test over seeds and sentences.

    The variance of the difference is the sum of two parts: the variance over paired resamples of the sentences, given
    these runs; and the training variance of both arms, each divided by its number of runs. The degrees of freedom are
    Satterthwaite's (1946): few if the seeds dominate, many if the sentences do. They use the whole variance over seeds
    of each arm, which is conservative. With equally many seeds in both arms the false positive rate at 0.05 is 0.02 to
    0.06 with two seeds and at most 0.05 with more; with two against five it may reach 0.07, as Welch's does.

    Arms that share their trainings seed by seed (`shared`) and are only decoded otherwise have no training variance of
    their own: in its place stands that of their differences.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: they were resampled with different seeds or sample counts.
    """
    refuse_unlike(arm, base)
    ours, theirs = arm.counts.scores, base.counts.scores
    difference = ours.mean - theirs.mean
    if unknown := (unknown_gap if shared else unknown_difference)(ours, theirs):
        return Comparison(difference, None, None, unknown)
    if shared:
        parts = [(_split(arm.bleu - base.bleu, differences_by_seed(ours, theirs)), ours.seeds)]
    else:
        parts = [(variances(side), side.counts.runs) for side in (arm, base)]
    variance = float(paired_differences(arm, base).var(ddof=1)) + sum(part.training / runs for part, runs in parts)
    doubt = sum((part.seeds / runs) ** 2 / (runs - 1) for part, runs in parts)
    if variance < ROUNDING**2:
        alike = f"{arm.counts.arm} and {base.counts.arm} translate alike, which leaves nothing to test"
        return Comparison(difference, None, None, alike)
    return t_test(difference, variance, variance**2 / doubt, level)


def sentence_deviation(arm: Resampled, base: Resampled) -> float:
    """Estimate the standard deviation of the difference of mean BLEU over test sets, in the limit of many seeds.

    It is the variance over resamples less the part that is due to the finite number of runs.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: they were resampled with different seeds or sample counts, or an arm has one run.
    """
    parts = [(variances(side), side.counts.runs) for side in (arm, base)]
    of_runs = sum((found.seeds - found.training) / runs for found, runs in parts)
    return max(0.0, float(paired_differences(arm, base).var(ddof=1)) - of_runs) ** 0.5
