"""OmegaConf resolvers for the YAML files, such as `${width:512}`."""

import os
from functools import partial
from math import inf, isfinite
from typing import Any

from omegaconf import DictConfig, OmegaConf

from etude.errors import UserError
from etude.files import typed_path

_FACTORS = {"width": "scale.width", "depth": "scale.depth", "heads": "scale.head_count", "steps": "budget.steps"}
"""`${width:512}`, `${depth:6}`, `${heads:8}`, `${steps:4000}`: the paper's number times the value of this key."""


_MOST_STEPS = 10  # more of the paper's 100,000 is a number of steps, typed for a share of them

RESOLVERS = {*_FACTORS, "data_key", "head_dim", "head_size", "noam_peak", "env", "expanduser", "oc.env"}
"""The resolvers known to read only sizes, budgets and `data`, or nothing of the config."""


def register() -> None:
    """Register the resolvers that `conf/` uses with OmegaConf; may be called repeatedly."""
    for name, key in _FACTORS.items():
        OmegaConf.register_new_resolver(name, partial(_scale, key=key), replace=True)
    for resolver in (_data_key, _env, _expanduser, _head_dim, _head_size, _noam_peak):
        OmegaConf.register_new_resolver(resolver.__name__.removeprefix("_"), resolver, replace=True)


def _scale(number: int, *, key: str, _root_: DictConfig) -> int:
    factor = _factor(_root_, key)
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number * factor):
        raise UserError(f"what is scaled by {key} must be a number, such as 512, not {number!r}")
    if key == "budget.steps" and factor > _MOST_STEPS:
        raise UserError(
            f"budget.steps={factor:g} is a share of {number:,} steps, which would make {number * factor:,.0f}: for "
            f"{factor:g} steps say budget.max_steps={factor:g}"
        )
    return max(1, round(number * factor))


def _data_key(name: str, *, _root_: DictConfig) -> Any:
    """Return the value of an optional key of `data`, else null."""
    return OmegaConf.select(_root_, f"data.{name}")


def _env(name: str, default: Any) -> Any:
    """Return an environment variable; the default if it is unset or empty."""
    return os.environ.get(name) or default


def _expanduser(path: str) -> str:
    """Return a path with the home directory in place of a leading ~, which a shell does not always replace."""
    return str(typed_path(path))


def _head_dim(size: int, *, _root_: DictConfig) -> int:
    """Multiply the paper's size of one head's keys or values by `scale.width / scale.head_count`."""
    return max(1, round(size * _factor(_root_, "scale.width") / _factor(_root_, "scale.head_count")))


def _noam_peak(*, _root_: DictConfig) -> float:
    """Compute the peak learning rate of equation (3): `budget.lr_factor * (d_model * warmup_steps)^-0.5`."""
    product = _whole(_root_, "model.d_model") * _whole(_root_, "budget.warmup_steps")
    return _factor(_root_, "budget.lr_factor") * max(1, product) ** -0.5


def _factor(root: DictConfig, key: str) -> float:
    factor = OmegaConf.select(root, key)
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise UserError(f"{key} must be a number, not {factor!r}: give the factor by which to scale, such as {key}=0.5")
    if not 0 < factor < inf:
        raise UserError(f"{key} must be above 0 and finite, not {factor}")
    return factor


def _whole(root: DictConfig, key: str) -> int:
    number = OmegaConf.select(root, key)
    if isinstance(number, bool) or not isinstance(number, int):
        raise UserError(f"{key} must be a whole number, not {number!r}")
    return number


def _head_size(size: Any, name: str, *, _root_: DictConfig) -> Any:
    """Return `size`, or d_model / heads if it is null.

    Raises:
        UserError: it is null, and `heads` does not divide `d_model`, or one of these is no whole number.
    """
    if size is not None:
        return size
    d_model, heads = _whole(_root_, "model.d_model"), _whole(_root_, "model.heads")
    if heads < 1:
        raise UserError(f"model.heads must be at least 1, not {heads}")
    if d_model % heads:
        fits = max(1, d_model // heads)
        raise UserError(
            f"model.heads={heads} does not divide model.d_model={d_model}{_scaled_by(_root_)}, and model.{name} is "
            f"left open: choose another number of heads, or say model.d_k={fits} model.d_v={fits}"
        )
    return d_model // heads


def _scaled_by(root: DictConfig) -> str:
    """Return the factors that d_model and heads owe their values to, such as " (by scale.width=0.125)"."""
    scales = {"d_model": "scale.width", "heads": "scale.head_count"}
    used = [scale for key, scale in scales.items() if OmegaConf.is_interpolation(root.model, key)]
    factors = [f"{scale}={factor}" for scale in used if (factor := OmegaConf.select(root, scale)) not in (None, 1)]
    return f" (by {' and '.join(factors)})" if factors else ""
