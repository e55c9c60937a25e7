"""Every variation of the model that `conf/` holds: a claim about all is written once, and a new YAML is held to it."""

from functools import cache
from itertools import product

from etude.study.axes import Axis, axes

# What computes as another of its axis does, but for a number or a function of single elements: `learned`, `sinusoidal`,
# `relu` and `swiglu` stand for these where variations meet.
ALIKE = {
    "model/position": ("learned_unscaled", "sinusoidal_t2t"),
    "model/feedforward": ("gelu", "squared_relu", "plain", "geglu", "gated"),
}


@cache
def variations(*parts: str) -> list[str]:
    """`model/position=rope` for every file of every axis of the model, behind the choice that it needs.

    The defaults are one and the same model, so that only the first of them stands here. With `parts`, such as
    "position", of their axes alone, and of those within them.
    """
    chosen = [(axis, value) for axis in _of_the_model(*parts) for value in axis.values]
    others = [_chooses(axis, value) for axis, value in chosen if value != axis.default]
    return [_chooses(*chosen[0]), *others]


@cache
def pairs(*groups: tuple[str, str]) -> list[tuple[str, str]]:
    """Each two options of two axes, such as ("position", "scale"), neither of which is a default."""
    alone = {part: [one for one in unlike(part) if " " not in one] for names in groups for part in names}
    return [pair for one, other in groups for pair in product(alone[one], alone[other])]


@cache
def unlike(part: str) -> list[str]:
    """The options of an axis, and of those within it, that compute otherwise than its default and each other."""
    left_out = {f"{group}={value}" for group, values in ALIKE.items() for value in values}
    return [one for one in variations(part)[1:] if one not in left_out]


def _of_the_model(*parts: str) -> list[Axis]:
    of_all = [axis for axis in axes() if axis.group.startswith("model/")]
    return [axis for axis in of_all if not parts or axis.group.split("/")[1] in parts]


def _chooses(axis: Axis, value: str) -> str:
    return f"{axis.needs} {axis.group}={value}".strip()
