"""The number of a finished run that Hydra's sweepers (Optuna, Ax, Nevergrad) optimize."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from omegaconf import DictConfig, OmegaConf

from etude.errors import UserError, did_you_mean
from etude.runs.divergence import divergence
from etude.studies.study import number_at


def objective(result: dict[str, Any], config: DictConfig) -> float:
    """Return the value in `result.json` that the key `objective` names; the worst possible value if the run diverged.

    Args:
        result: the result of a finished run.
        config: the composed config with Hydra's own node, which tells whether the sweeper maximizes.

    Raises:
        UserError: the result holds no such number.
    """
    key = config.objective
    value = number_at(result, key)
    if divergence(result):
        highest = OmegaConf.select(config, "hydra.sweeper.direction") == "maximize"
        return -inf if highest or OmegaConf.select(config, "hydra.sweeper.optim.maximize") else inf
    if value is None:
        raise UserError(
            f"objective={key} is no number in the result of a run; {did_you_mean(key, _numbers(result))} "
            "(the run is finished: the same command with another objective computes nothing again)"
        )
    return value


def _numbers(node: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{path}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{path}{key}"
