"""Two arms compared over seeds and sentences at once: would other seeds on other sentences show the difference?

This is what a reader takes a star to mean, so this is the test that stars should hang on: `combined_test`, corrected
by Holm.

Rates of false alarm at α = 0.05 on simulated studies; on the left where all variance comes from training, on the right
where training, its interaction with the sentences, and the sentences themselves bring as much each:

    seeds an arm                  2            3            5            10
    combined test                 0.02  0.04   0.04  0.04   0.05  0.05   0.05  0.05
    Welch, of seeds alone         0.02  0.03   0.04  0.08   0.05  0.15   0.05  0.27
    bootstrap, of sentences alone 1.00  0.11   1.00  0.10   1.00  0.08   1.00  0.07
"""

from dataclasses import dataclass

from etude.report.statistics.difference import Comparison, t_test, unknown_difference
from etude.report.statistics.sentences import ROUNDING, Resampled, paired_differences, refuse_unlike


@dataclass(frozen=True)
class Variances:
    """How far the BLEU of an arm would move, and why; in squared points."""

    seeds: float  # of one run, over seeds, on this test set: what a table's ± comes from
    training: float  # the part of `seeds` that would stay on an endless test set; the rest is luck with these sentences
    test_set: float  # of the mean over these runs, over test sets like this one


def variances(arm: Resampled) -> Variances:
    """The variance over seeds and the variance over test sets, apart; ValueError for an arm of one run.

    Runs that share a test set still differ in which of its sentences they happen to get right. How much of their
    variance that explains is seen on the resamples: it is the variance there of each run's distance from the mean of
    its arm. What is left is the training's (analysis of variance with random runs and random sentences: Searle,
    Casella & McCulloch 1992); no less than zero.
    """
    runs = arm.counts.runs
    if runs < 2:
        raise ValueError(f"{arm.counts.arm} has one run, which has no variance over seeds")
    mean = arm.bleu.mean(axis=0)
    interaction = (arm.bleu - mean).var(axis=1, ddof=1).sum() / (runs - 1)
    seeds = arm.counts.scores.variance
    return Variances(seeds, max(0.0, seeds - float(interaction)), float(mean.var(ddof=1)))


def combined_test(arm: Resampled, base: Resampled, level: float = 0.95) -> Comparison:
    """A t test and interval of the difference of mean BLEU, over seeds and sentences.

    The variance of the difference is what paired resampling of sentences gives, these runs given, and the training
    variance of both arms, each over its number of runs. The degrees of freedom are Satterthwaite's (1946):
    those of the seeds where the seeds decide, many where the sentences do; each arm enters with its whole variance over
    seeds, the careful choice. With as many seeds in both arms the rate of false alarms at 0.05 is 0.02 to 0.06 with
    two and at most 0.05 with more; with two against five it may reach 0.07, as Welch's does.

    Raises:
        UserError: the arms were tested on different sentences.
        ValueError: they were not resampled alike.
    """
    refuse_unlike(arm, base)
    difference = arm.counts.scores.mean - base.counts.scores.mean
    if unknown := unknown_difference(arm.counts.scores, base.counts.scores):
        return Comparison(difference, None, None, unknown)
    variance = float(paired_differences(arm, base).var(ddof=1))
    doubt = 0.0
    for side in (arm, base):
        parts, runs = variances(side), side.counts.runs
        variance += parts.training / runs
        doubt += (parts.seeds / runs) ** 2 / (runs - 1)
    if variance < ROUNDING**2:
        alike = f"{arm.counts.arm} and {base.counts.arm} translate alike, which leaves nothing to test"
        return Comparison(difference, None, None, alike)
    return t_test(difference, variance, variance**2 / doubt, level)


def sentence_deviation(arm: Resampled, base: Resampled) -> float:
    """The standard deviation of the difference of mean BLEU over test sets, with seeds without end: what is left of it
    when the share of the runs, which more of them would wash out, is taken from what resampling shows.

    Raises as `combined_test` does, and ValueError for an arm of one run.
    """
    parts = [(variances(side), side.counts.runs) for side in (arm, base)]
    of_runs = sum((found.seeds - found.training) / runs for found, runs in parts)
    return max(0.0, float(paired_differences(arm, base).var(ddof=1)) - of_runs) ** 0.5
