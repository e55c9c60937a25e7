"""What every variation is, for counts."""

import pytest
from tests.variations import variations

from etude.study.study import load_study


def company(variation: str) -> list[str]:
    """The variation with the overrides that it needs beside it, as the study of all axes says."""
    arm = variation.removeprefix("model/").replace("=", "-")
    return load_study("axes").arms.get(arm, variation.split())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `variation` runs once for each."""
    if "variation" in metafunc.fixturenames:
        metafunc.parametrize("variation", [company(v) for v in variations()], ids=variations())
