"""Tiny models out of `conf/`, one for every variation that it holds, and PyTorch's layers with their weights."""

import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import torch
from tests.variations import pairs, variations
from torch import nn

from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.errors import UserError
from etude.model.encoder_decoder import EncoderDecoder
from etude.paths import shipped
from etude.tasks import build

VOCABULARY = 40
SIZES = ("model.d_model=16", "model.d_ff=24", "model.heads=4", "model.n_layers=2", "model.dropout=0.1")
TINY = (*SIZES, "model.vocabulary=null")  # null: as many rows as there are pieces, here 40

_OFFER = re.compile(r"say (([\w/.]+)=[\w.]+)")


def options(axis: str) -> list[str]:
    """`model/position=rope` for every file of `conf/model/position`."""
    return [f"model/{axis}={file.stem}" for file in sorted((shipped("conf") / "model" / axis).glob("*.yaml"))]


INTERACTING = (
    ("position", "attention"),
    ("position", "scale"),
    ("attention", "scale"),
    ("residual", "norm"),
    ("residual", "feedforward"),
    ("encoder", "position"),
    ("decoder", "position"),
    ("encoder", "decoder"),
    ("encoder", "residual"),
    ("decoder", "residual"),
    ("decoder", "attention"),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `variation` runs once for each; one that asks for `pair`, for each that may interact."""
    if "variation" in metafunc.fixturenames:
        metafunc.parametrize("variation", variations())
    if "pair" in metafunc.fixturenames:
        metafunc.parametrize("pair", pairs(*INTERACTING), ids=" ".join)


@cache
def composed(*given: str) -> dict[str, Any]:
    """The config that these overrides give at tiny sizes, with what the rules ask for beside them.

    ReZero goes without norms, say: the refusal of any other names the override that mends it, and it is taken.
    """
    overrides = [override for several in given for override in several.split()]
    try:
        return resolve_valid(compose([*TINY, *overrides]))
    except UserError as refusal:
        chosen = {override.partition("=")[0] for override in overrides}
        offers = [offer for offer, key in _OFFER.findall(str(refusal)) if key not in chosen]
        if not offers:
            raise
        return composed(*overrides, offers[0])


@pytest.fixture
def configured() -> Callable[..., dict[str, Any]]:
    """The config of a tiny model with some overrides."""
    return composed


@pytest.fixture
def tiny() -> Callable[..., EncoderDecoder]:
    """Builds a tiny model with some overrides, in evaluation mode."""

    def make(*overrides: str) -> EncoderDecoder:
        return build.model(composed(*overrides), VOCABULARY).eval()

    return make


@pytest.fixture
def jittered(tiny: Callable[..., EncoderDecoder]) -> Callable[..., EncoderDecoder]:
    """Builds a tiny model whose weights have left their start: a bias of zero or a gain of one would hide a mistake."""

    def make(*overrides: str) -> EncoderDecoder:
        return jitter(tiny(*overrides))

    return make


def jitter(model: EncoderDecoder) -> EncoderDecoder:
    """The model, each weight a little off; twice the same."""
    generator = torch.Generator().manual_seed(13)
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


@pytest.fixture
def model(variation: str) -> EncoderDecoder:
    """The jittered model of a variation: a copy, which takes a fifth of the time to build one."""
    return deepcopy(_jittered_of(variation))


@cache
def _jittered_of(variation: str) -> EncoderDecoder:
    return jitter(build.model(composed(variation), VOCABULARY).eval())


@pytest.fixture
def sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source (3, 7) whose rows have 7, 4 and 1 real tokens, its mask, and target_in (3, 5)."""
    return some_sentences([7, 4, 1], 5)


@pytest.fixture
def longer_sentences() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source (3, 12) whose rows have 12, 7 and 1 real tokens, its mask, and target_in (3, 9): more than a window."""
    return some_sentences([12, 7, 1], 9)


def some_sentences(lengths: list[int], target_length: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(11)
    source = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    target = torch.randint(4, VOCABULARY, (len(lengths), target_length), generator=generator)
    return source.masked_fill(~mask, 0), mask, target


def drawn(*shape: int) -> torch.Tensor:
    """Numbers in double precision that depend on the shape alone."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.fixture
def pytorchs() -> Callable[..., nn.TransformerEncoderLayer | nn.TransformerDecoderLayer]:
    """Makes PyTorch's own layer with the weights of one of ours, pre- or post-norm, in float32 or float64."""

    def make(ours: nn.Module, *, pre: bool, activation: str = "relu") -> Any:
        crossing = hasattr(ours, "cross_attention")
        kind = nn.TransformerDecoderLayer if crossing else nn.TransformerEncoderLayer
        d_ff, d_model = ours.feedforward.inner.weight.shape
        sizes = {"d_model": d_model, "nhead": ours.attention.heads, "dim_feedforward": d_ff, "batch_first": True}
        theirs = kind(**sizes, dropout=0.0, norm_first=pre, layer_norm_eps=1e-6, activation=activation)
        theirs.to(ours.feedforward.inner.weight.dtype)
        _copy_attention(theirs.self_attn, ours.attention)
        arounds = [ours.attention_residual, ours.feedforward_residual]
        if crossing:
            _copy_attention(theirs.multihead_attn, ours.cross_attention)
            arounds.insert(1, ours.cross_attention_residual)
        theirs.linear1.load_state_dict(ours.feedforward.inner.state_dict())
        theirs.linear2.load_state_dict(ours.feedforward.outer.state_dict())
        for number, around in enumerate(arounds, start=1):
            getattr(theirs, f"norm{number}").load_state_dict(around.norm.state_dict())
        return theirs.eval()

    return make


def _copy_attention(theirs: nn.MultiheadAttention, ours: nn.Module) -> None:
    theirs.in_proj_weight.data = torch.cat([ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight]).detach()
    theirs.in_proj_bias.data = torch.cat([ours.q_proj.bias, ours.k_proj.bias, ours.v_proj.bias]).detach()
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
