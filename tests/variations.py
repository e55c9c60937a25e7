"""Every variation of the model that `conf/` holds: a claim about all is written once, and a new YAML is held to it."""

from functools import cache
from itertools import product

from etude.study.axes import Axis, axes


@cache
def variations() -> list[str]:
    """`model/position=rope` for every file of every axis of the model, behind the choice that it needs.

    The defaults are one and the same model, so that only the first of them stands here.
    """
    chosen = [(axis, value) for axis in _of_the_model() for value in axis.values]
    others = [_chooses(axis, value) for axis, value in chosen if value != axis.default]
    return [_chooses(*chosen[0]), *others]


@cache
def pairs(*groups: tuple[str, str]) -> list[tuple[str, str]]:
    """Every option of one axis with every option of another, such as ("position", "scale"), each model once."""
    of = {axis.group.removeprefix("model/"): axis for axis in _of_the_model()}
    models: dict[frozenset[str], tuple[str, str]] = {}
    for names in groups:
        both = [of[name] for name in names]
        for values in product(*(axis.values for axis in both)):
            chosen = list(zip(both, values, strict=True))
            one, other = (_chooses(axis, value) for axis, value in chosen)
            models.setdefault(frozenset(_chooses(a, v) for a, v in chosen if v != a.default), (one, other))
    return list(models.values())


def _of_the_model() -> list[Axis]:
    return [axis for axis in axes() if axis.group.startswith("model/")]


def _chooses(axis: Axis, value: str) -> str:
    return f"{axis.needs} {axis.group}={value}".strip()
