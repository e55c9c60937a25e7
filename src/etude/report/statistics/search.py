"""What a search is worth: the best score one may expect of so many trials."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.report.statistics.scores import Scores


@dataclass(frozen=True, eq=False)
class ExpectedBest:
    """The expected best validation score as a curve.

    Attributes:
        trials: (N,) n = 1 to N, the number of trials that were made.
        expected: (N,) the mean of the best of n, in the metric's unit.
        deviation: (N,) the standard deviation of the best of n: how much luck n trials leave to the searcher.
    """

    trials: NDArray[np.int64]
    expected: NDArray[np.float64]
    deviation: NDArray[np.float64]


def expected_best(search: Scores, lower_is_better: bool = False) -> ExpectedBest:
    """The best of n trials drawn as these N were, for each n up to N (Dodge et al. 2019, section 3).

    The trials must have been drawn at random and independently of each other; a searcher that learns from earlier
    trials breaks that. The distribution of scores is taken as these N show it, so that
    P(best of n <= i-th smallest) = (i / N)^n: exact, without sampling. Near n = N the curve is too low, for N
    trials cannot show what is better than their best (Tang et al. 2020).

    Args:
        search: one validation score a trial; the name is that of the search.
        lower_is_better: for losses and perplexities.
    """
    sign = -1.0 if lower_is_better else 1.0
    ranked = np.sort(sign * np.asarray(search.values, dtype=np.float64))
    trials = np.arange(1, len(ranked) + 1)
    at_most = np.linspace(0, 1, len(ranked) + 1) ** trials[:, None]
    chance = np.diff(at_most, axis=1)  # (N, N): of each score to be the best of n; scores that tie share theirs
    expected = chance @ ranked
    variance = (chance * (ranked - expected[:, None]) ** 2).sum(axis=1)
    return ExpectedBest(trials, sign * expected, np.sqrt(variance))
