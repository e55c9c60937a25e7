"""What `${width:512}` and its kin mean in a YAML file."""

import os
from functools import partial
from math import inf, isfinite
from typing import Any

from omegaconf import DictConfig, OmegaConf

from etude.errors import UserError

_FACTORS = {"width": "scale.width", "depth": "scale.depth", "heads": "scale.head_count", "steps": "budget.steps"}
"""`${width:512}`, `${depth:6}`, `${heads:8}`, `${steps:4000}`: a number as the paper prints it, times this key."""


RESOLVERS = {*_FACTORS, "data_key", "head_dim", "head_size", "noam_peak", "env", "oc.env"}
"""Those of which it is known that they read sizes, budgets and the data alone, or nothing of the config."""


def register() -> None:
    """Teach OmegaConf the resolvers of `conf/`; may be called again."""
    for name, key in _FACTORS.items():
        OmegaConf.register_new_resolver(name, partial(_scale, key=key), replace=True)
    for resolver in (_data_key, _env, _head_dim, _head_size, _noam_peak):
        OmegaConf.register_new_resolver(resolver.__name__.removeprefix("_"), resolver, replace=True)


def _scale(number: int, *, key: str, _root_: DictConfig) -> int:
    factor = _factor(_root_, key)
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number * factor):
        raise UserError(f"what is scaled by {key} must be a number, such as 512, not {number!r}")
    return max(1, round(number * factor))


def _data_key(name: str, *, _root_: DictConfig) -> Any:
    """What the corpus says under a key that few have, else null."""
    return OmegaConf.select(_root_, f"data.{name}")


def _env(name: str, default: Any) -> Any:
    """A variable of the environment; one that is empty says nothing."""
    return os.environ.get(name) or default


def _head_dim(size: int, *, _root_: DictConfig) -> int:
    """The size of one head's keys or values as the paper prints it, times `scale.width` over `scale.head_count`."""
    return max(1, round(size * _factor(_root_, "scale.width") / _factor(_root_, "scale.head_count")))


def _noam_peak(*, _root_: DictConfig) -> float:
    """The highest learning rate of equation (3): `budget.lr_factor * (d_model * warmup_steps)^-0.5`."""
    product = _root_.model.d_model * _root_.budget.warmup_steps
    return _factor(_root_, "budget.lr_factor") * max(1, product) ** -0.5


def _factor(root: DictConfig, key: str) -> float:
    factor = OmegaConf.select(root, key)
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise UserError(f"{key} must be a number, not {factor!r}: give the factor by which to scale, such as {key}=0.5")
    if not 0 < factor < inf:
        raise UserError(f"{key} must be above 0 and finite, not {factor}")
    return factor


def _head_size(size: Any, name: str, *, _root_: DictConfig) -> Any:
    """`size` itself, or d_model / heads where it is left open."""
    if size is not None:
        return size
    d_model, heads = _root_.model.d_model, _root_.model.heads
    if not isinstance(d_model, int) or not isinstance(heads, int) or heads < 1:
        raise UserError(
            f"model.{name} is left open, and model.d_model={d_model} / model.heads={heads} does not give it"
        )
    if d_model % heads:
        raise UserError(
            f"model.heads={heads} does not divide model.d_model={d_model}, and model.{name} is left open: "
            f"choose another number of heads, or say model.{name}={max(1, d_model // heads)}"
        )
    return d_model // heads
