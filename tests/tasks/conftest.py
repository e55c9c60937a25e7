"""What every variation is, for counts."""

from functools import cache

import pytest

from etude.studies.axes import axes
from etude.studies.study import load_study


@cache
def variations() -> list[str]:
    """`model/position=rope` for every file of every axis of the model, with the choice that it needs before it."""
    model = [axis for axis in axes() if axis.group.startswith("model/")]
    return [f"{axis.needs} {axis.group}={value}".strip() for axis in model for value in axis.values]


def company(variation: str) -> list[str]:
    """The variation with the overrides that it needs beside it, as the study of all axes says."""
    arm = variation.removeprefix("model/").replace("=", "-")
    return load_study("axes").arms.get(arm, variation.split())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `variation` runs once for each."""
    if "variation" in metafunc.fixturenames:
        metafunc.parametrize("variation", [company(v) for v in variations()], ids=variations())
