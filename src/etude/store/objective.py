"""The number of a finished run that Hydra's own sweepers (Ax, Nevergrad) optimize."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from etude.errors import UserError, did_you_mean
from etude.store.divergence import divergence
from etude.study.study import leaves, number_at

if TYPE_CHECKING:
    from omegaconf import DictConfig


def objective(result: dict[str, Any], config: "DictConfig") -> float:
    """Return the value in `result.json` that the key `objective` names; the worst possible value if the run diverged.

    Args:
        result: the result of a finished run.
        config: the composed config with Hydra's own node, which tells whether the sweeper maximizes.

    Raises:
        UserError: the result holds no such number.
    """
    from omegaconf import OmegaConf  # late, as a report reads `numbers` without it

    named = OmegaConf.select(config, "optimized_metric")
    key = named if isinstance(named, str) else config.objective  # several are for a search, which reads results itself
    value = number_at(result, key)
    if divergence(result):
        highest = OmegaConf.select(config, "hydra.sweeper.direction") == "maximize"
        return -inf if highest or OmegaConf.select(config, "hydra.sweeper.optim.maximize") else inf
    if value is None:
        raise UserError(
            f"objective={key} is not a number in the result of a run; {did_you_mean(key, numbers(result))} "
            "(the run is finished: the same command with another objective computes nothing again)"
        )
    return value


def numbers(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the dotted key of every number in a result."""
    return (key for key, value in leaves(result) if isinstance(value, int | float) and not isinstance(value, bool))
