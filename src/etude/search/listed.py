"""The sampler of a search whose trials are listed beforehand. This file imports Optuna, so it is imported late."""

from collections.abc import Callable, Mapping
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial


class ListedSampler(BaseSampler):
    """Gives each trial the values that are listed for its number.

    Args:
        drawn: what is drawn for each key of a trial, given its number.
    """

    def __init__(self, drawn: Callable[[int], Mapping[str, Any]]) -> None:
        self._drawn = drawn

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return no key: each is drawn by itself."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return what is listed for the number of the trial."""
        return self._drawn(trial.number)[param_name]


class DrawnSampler(ListedSampler):
    """The same where all values that are listed are drawn at random, so that no trial depends on another."""
