"""Optimizers. Their learning rate is 1, as the schedule sets the learning rate itself."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor, optim

from etude.config.parts import make
from etude.errors import UserError, did_you_mean

Named = tuple[str, Tensor]


def adam(parameters: Iterable[Tensor | Named], *, beta1: float, beta2: float, eps: float) -> optim.Optimizer:
    """Make Adam (Kingma and Ba 2015) as in section 5.3, with one fused kernel for all parameters."""
    return optim.Adam(parameters, lr=1.0, betas=(beta1, beta2), eps=eps, fused=True)  # type: ignore[arg-type]


def adamw_on_matrices(
    parameters: Iterable[Any], *, lr: float, betas: list[float], eps: float, weight_decay: float, undecayed: str
) -> optim.Optimizer:
    """Make AdamW whose weight decay is that of matrices alone, and not of gains, biases and other vectors.

    A group with a weight decay of its own has that for all that it matches.

    Args:
        parameters: named parameters, or groups of them.
        lr, betas, eps, weight_decay: see `torch.optim.AdamW`.
        undecayed: a regular expression for the names of matrices without decay.
    """
    groups = _as_groups(parameters)
    decayed = [*_part_of(groups, lambda name, weight: _is_matrix(name, weight, undecayed))]
    rest = [*_part_of(groups, lambda name, weight: not _is_matrix(name, weight, undecayed))]
    beta1, beta2 = betas
    return optim.AdamW(
        [*decayed, *({"weight_decay": 0.0} | group for group in rest)],
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        fused=True,
    )


def adam_mup(
    parameters: Iterable[Any],
    *,
    beta1: float,
    beta2: float,
    eps: float,
    width: int,
    base_width: int,
    tables: str,
    vectors: str,
) -> optim.Optimizer:
    """Make Adam whose rates depend on the width, so that the best one need not (Yang et al. 2022, table 8).

    The rate of weights that sum over the width, matrices and convolutions, is divided by `width / base_width`; that of
    tables of embeddings, which are multiplied by sqrt(width) where they are read, by its square root; that of vectors,
    and of what acts as they do, is the schedule's.

    Args:
        parameters: named parameters, or groups of them.
        beta1, beta2, eps: see `torch.optim.Adam`.
        width: D.
        base_width: the width whose rates are those of the schedule.
        tables: a regular expression for the names of tables.
        vectors: the same for other weights of two axes or more that do not sum over the width.
    """
    groups, ratio = _as_groups(parameters), width / base_width

    def rate(name: str, weight: Tensor) -> float:
        if weight.ndim > 1 and re.search(tables, name):
            return ratio**-0.5
        return 1.0 if weight.ndim < 2 or re.search(vectors, name) else 1 / ratio

    made = [
        group | {"lr": one * group.get("lr", 1.0)}
        for one in dict.fromkeys([1.0, ratio**-0.5, 1 / ratio])
        for group in _part_of(groups, lambda name, weight, one=one: rate(name, weight) == one)  # type: ignore[misc]
    ]
    return optim.Adam(made, lr=1.0, betas=(beta1, beta2), eps=eps, fused=True)


def make_optimizer(config: Mapping[str, Any], parameters: Iterable[Named]) -> optim.Optimizer:
    """Make the optimizer of a config for named parameters, in the parameter groups of its `groups`, if any.

    Raises:
        UserError: it is no optimizer, a group matches no parameter, or sets an option that the optimizer does not have.
    """
    groups, named = config.get("groups") or [], list(parameters)
    node = {key: value for key, value in config.items() if key != "groups"}
    optimizer: optim.Optimizer = make(node, _group_parameters(named, groups) if groups else named)
    if not isinstance(optimizer, optim.Optimizer):
        raise UserError(f"optimizer: {node['_target_']} is not a torch.optim.Optimizer: derive it from that class")
    if not {"closure", "args"} & signature(optimizer.step).parameters.keys():
        raise UserError(f"optimizer: `step` of {node['_target_']} must take a closure, and call it, as PyTorch's do")
    if any("lr" not in group for group in optimizer.param_groups):
        raise UserError(f"optimizer: {node['_target_']}: its parameter groups need `lr`, which the schedule sets")
    for key in {key for group in groups for key in group} - {"match", *optimizer.defaults}:
        near = did_you_mean(key, optimizer.defaults)
        raise UserError(f"optimizer.groups: {type(optimizer).__name__} has no {key} for a group; {near}")
    return optimizer


def _group_parameters(named: Sequence[Named], groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put each parameter into the first group that matches it.

    Parameters without a group come first, because the learning rate of the first group is logged.

    Raises:
        UserError: a group is empty.
    """
    members: list[list[Named]] = [[] for _ in [*groups, "others"]]
    for name, parameter in named:
        place = next((n for n, group in enumerate(groups) if re.search(group["match"], name)), -1)
        members[place].append((name, parameter))
    *members, others = members
    for group, one in zip(groups, members, strict=True):
        if not one:
            names = sorted({re.sub(r"\.\d+\.", ".*.", name) for name, _ in named})
            raise UserError(
                f"optimizer.groups: {group['match']!r} matches no parameter that an earlier group has left; "
                f"their names are {', '.join(names)}"
            )
    values = [{key: value for key, value in group.items() if key != "match"} for group in groups]
    grouped = [{"params": one} | own for one, own in zip(members, values, strict=True)]
    return [{"params": others}, *grouped] if others else grouped


class Muon(optim.Optimizer):
    """Muon (Jordan et al. 2024) for matrices, AdamW for all other parameters and for matrices of certain names.

    Args:
        params: named parameters, or groups of them.
        lr, weight_decay: for both optimizers.
        momentum, nesterov, ns_steps, adjust_lr_fn: see `torch.optim.Muon`.
        betas, eps: see `torch.optim.AdamW`.
        adamw: a regular expression for the names of matrices that AdamW updates.

    Raises:
        UserError: this PyTorch has no Muon.
    """

    def __init__(
        self,
        params: Iterable[Any],
        *,
        lr: float,
        weight_decay: float,
        momentum: float,
        nesterov: bool,
        ns_steps: int,
        adjust_lr_fn: str,
        betas: list[float],
        eps: float,
        adamw: str,
    ) -> None:
        if not hasattr(optim, "Muon"):
            raise UserError(f"optimizer=muon needs PyTorch 2.9 or newer, and this is {torch.__version__}")
        groups = _as_groups(params)
        beta1, beta2 = betas
        shared: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay}
        by_muon = shared | {
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        by_adamw = shared | {"betas": (beta1, beta2), "eps": eps, "fused": True}

        def is_matrix(name: str, parameter: Tensor) -> bool:
            return _is_matrix(name, parameter, adamw) and 1 not in parameter.shape  # that is a vector

        matrices = [*_part_of(groups, is_matrix)]
        rest = [*_part_of(groups, lambda *one: not is_matrix(*one))]
        parts = [(optim.Muon, matrices, by_muon), (optim.AdamW, rest, by_adamw)]
        if not any(is_matrix(*one) for one in groups[0]["params"]):
            parts.reverse()  # the learning rate of the first group is logged
        self._parts = [make(groups, **values) for make, groups, values in parts if groups]
        super().__init__([group for part in self._parts for group in part.param_groups], by_muon | by_adamw)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter with its optimizer."""
        loss = closure() if closure else None
        start = 0
        for part in self._parts:  # loading a checkpoint replaces groups and state of `self`, which the parts must use
            end = start + len(part.param_groups)
            part.param_groups, part.state, start = self.param_groups[start:end], self.state, end
            part.step()
        return loss


def _as_groups(parameters: Iterable[Any]) -> list[dict[str, Any]]:
    """Return named parameters, or groups of them, as groups."""
    first, *others = several = list(parameters)
    return several if isinstance(first, dict) else [{"params": [first, *others]}]


def _is_matrix(name: str, parameter: Tensor, but: str) -> bool:
    """Return whether a parameter is a matrix whose name a pattern does not match; an empty pattern matches none."""
    return parameter.ndim == 2 and not (but and re.search(but, name))


def _part_of(groups: Iterable[dict[str, Any]], belongs: Callable[[str, Tensor], bool]) -> Iterator[dict[str, Any]]:
    """Yield each group with the parameters that belong to one optimizer."""
    for group in groups:
        if members := [one for one in group["params"] if belongs(*one)]:
            yield group | {"params": members}
