"""Tiny models out of `conf/`, one for every variation, and subwords for them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from etude.config.check import check
from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.tokenizer import SentencePiece, Tokenizer
from etude.model.encoder_decoder import EncoderDecoder
from etude.tasks import build

SIZES = ("model.d_model=16", "model.d_ff=24", "model.heads=4", "model.n_layers=2", "model.vocabulary=null")


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Forty subwords."""
    pieces = SentencePiece(
        model_type="bpe", hard_vocab_limit=True, vocab_size=40, character_coverage=1.0, normalization="identity"
    )
    file: Path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    file.write_bytes(pieces.train(["ein kleiner hund sieht die alte frau"] * 20))
    return Tokenizer(file)


@pytest.fixture
def jittered(tokenizer: Tokenizer) -> Callable[[str], EncoderDecoder]:
    """Builds a tiny model whose weights have left their start: a bias of zero or a gain of one would hide a mistake."""

    def make(overrides: str) -> EncoderDecoder:
        config = compose([*SIZES, *overrides.split()])
        check(config)
        model = build.model(resolve(config), len(tokenizer)).eval()
        generator = torch.Generator().manual_seed(13)
        for parameter in model.parameters():
            parameter.data.add_(0.2 * torch.randn(parameter.shape, generator=generator))
        return model

    return make
