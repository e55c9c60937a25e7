"""Simulated arms whose truth is known, and how far a rate may stray from what it should be."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from etude.report.statistics import Counts

STRAY = 0.001  # how seldom a sound method may fail one of these tests, had its seed not been fixed


@pytest.fixture
def nominal() -> Callable[[int, int, float], bool]:
    """Whether so many hits in so many trials are what a rate would bring."""

    def check(hits: int, trials: int, rate: float) -> bool:
        return bool(stats.binomtest(hits, trials, rate).pvalue > STRAY)

    return check


@pytest.fixture
def at_most() -> Callable[[int, int, float], bool]:
    """Whether so many hits in so many trials do not betray more than a rate."""

    def check(hits: int, trials: int, rate: float) -> bool:
        return bool(stats.binomtest(hits, trials, rate, alternative="greater").pvalue > STRAY)

    return check


@pytest.fixture
def simulate() -> Callable[..., list[Counts]]:
    """Makes two arms, tested on the same sentences; the second is the base."""

    def make(
        random: np.random.Generator,
        runs: int | tuple[int, int] = 3,
        sentences: int = 120,
        *,
        training: float = 0.0,
        taste: float = 0.0,
        better: float = 0.0,
        shared: float = 0.0,
    ) -> list[Counts]:
        """A word is right with a chance whose logit is the sum of the sentence's ease, luck, and what is asked for.

        Args:
            training: standard deviation of a run's luck, the same on every sentence.
            taste: standard deviation of what an arm finds easier or harder in one sentence than the other arm does.
            better: how much better the first arm is than the second.
            shared: standard deviation of the luck that a run of one arm has in common with that of the other.
        """
        words = 5 + random.poisson(8, sentences)
        ease = random.normal(0.8, 0.7, sentences)
        common = random.normal(0, shared, (runs, 1)) if shared else 0.0
        arms = []
        for name, advantage, size in zip(("arm", "base"), (better, 0.0), np.broadcast_to(runs, 2), strict=True):
            luck = common + (random.normal(0, training, (size, 1)) if training else np.zeros((size, 1)))
            likes = random.normal(0, taste, sentences) if taste else 0.0
            right = 1 / (1 + np.exp(-(advantage + ease + luck + likes)))
            columns = [np.broadcast_to(words, (size, sentences))] * 2
            matches = columns[0]
            for order in range(4):
                matches = random.binomial(np.minimum(matches, words - order), right)
                columns = [*columns, matches]
            columns += [np.broadcast_to(words - order, (size, sentences)) for order in range(4)]
            arms.append(Counts(name, np.stack(columns, axis=-1).astype(np.float64)))
        return arms

    return make
