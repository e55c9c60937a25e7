"""What `${width:512}` and its kin mean in a YAML file."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from etude.errors import UserError


def register() -> None:
    """Teach OmegaConf the resolvers of `conf/`; may be called again."""
    OmegaConf.register_new_resolver("width", _width, replace=True)
    OmegaConf.register_new_resolver("depth", _depth, replace=True)
    OmegaConf.register_new_resolver("heads", _heads, replace=True)
    OmegaConf.register_new_resolver("head_dim", _head_dim, replace=True)
    OmegaConf.register_new_resolver("steps", _steps, replace=True)
    OmegaConf.register_new_resolver("head_size", _head_size, replace=True)
    OmegaConf.register_new_resolver("noam_peak", _noam_peak, replace=True)


def _width(size: int, *, _root_: DictConfig) -> int:
    """A size as the paper prints it, times `scale.width`."""
    return _scaled(size, _root_, "scale.width")


def _depth(layers: int, *, _root_: DictConfig) -> int:
    """A number of layers as the paper prints it, times `scale.depth`."""
    return _scaled(layers, _root_, "scale.depth")


def _heads(heads: int, *, _root_: DictConfig) -> int:
    """A number of attention heads as the paper prints it, times `scale.head_count`."""
    return _scaled(heads, _root_, "scale.head_count")


def _head_dim(size: int, *, _root_: DictConfig) -> int:
    """The size of one head's keys or values as the paper prints it, times `scale.width` over `scale.head_count`."""
    heads = _factor(_root_, "scale.head_count")
    if heads <= 0:
        raise UserError(f"scale.head_count must be above 0 and finite, not {heads}")
    return max(1, round(size * _factor(_root_, "scale.width") / heads))


def _steps(steps: int, *, _root_: DictConfig) -> int:
    """A number of optimizer steps as the paper prints it, times `budget.steps`."""
    return _scaled(steps, _root_, "budget.steps")


def _noam_peak(*, _root_: DictConfig) -> float:
    """The highest learning rate of equation (3): `budget.lr_factor * (d_model * warmup_steps)^-0.5`."""
    product = _root_.model.d_model * _root_.budget.warmup_steps
    return _factor(_root_, "budget.lr_factor") * max(1, product) ** -0.5


def _scaled(size: int, root: DictConfig, key: str) -> int:
    return max(1, round(size * _factor(root, key)))


def _factor(root: DictConfig, key: str) -> float:
    factor = OmegaConf.select(root, key)
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise UserError(f"{key} must be a number, not {factor!r}: give the factor by which to scale, such as {key}=0.5")
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
