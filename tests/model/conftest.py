"""Tiny models out of `conf/`, one for every variation that it holds."""

from collections.abc import Callable

import pytest
import torch

from etude import build
from etude.config.compose import compose
from etude.model.transformer import Transformer
from etude.paths import shipped

VOCABULARY = 40
TINY = ("model.d_model=16", "model.d_ff=24", "model.heads=4", "model.n_layers=2", "model.dropout=0.1")


def variations() -> list[str]:
    """`model/position=rope` for every file of every axis of the model: a new YAML is tested on arrival."""
    axes = sorted(folder for folder in (shipped("conf") / "model").iterdir() if folder.is_dir())
    return [f"model/{axis.name}={file.stem}" for axis in axes for file in sorted(axis.glob("*.yaml"))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `variation` runs once for each."""
    if "variation" in metafunc.fixturenames:
        metafunc.parametrize("variation", variations())


@pytest.fixture
def tiny() -> Callable[..., Transformer]:
    """Builds a tiny model with some overrides, in evaluation mode."""

    def make(*overrides: str) -> Transformer:
        torch.manual_seed(7)
        composed = compose([*TINY, *overrides])
        from etude.config.identity import resolved

        return build.model(resolved(composed), VOCABULARY).eval()

    return make


@pytest.fixture
def sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source (3, 7) whose rows have 7, 4 and 1 real tokens, its mask, and target_in (3, 5)."""
    generator = torch.Generator().manual_seed(11)
    source = torch.randint(4, VOCABULARY, (3, 7), generator=generator)
    mask = torch.arange(7) < torch.tensor([[7], [4], [1]])
    return source.masked_fill(~mask, 0), mask, torch.randint(4, VOCABULARY, (3, 5), generator=generator)
