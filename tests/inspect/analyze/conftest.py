"""Models with random weights and the subwords of a small text, to be analysed as if they were trained."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.tokenizer import SentencePiece, Tokenizer
from etude.inspect.analyze.subject import Pair, Subject, Text
from etude.store.run_dir import RunDir
from etude.tasks import build

SIZES = ("model.d_model=16", "model.d_ff=24", "model.heads=4", "model.n_layers=2")

MakeSubject = Callable[..., Subject]


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    """Thirty pairs of lines of letters, the target backwards."""
    rows = [" ".join("abcdefgh"[(k * j + k // 8) % 8] for j in range(1, 4 + k % 9)) for k in range(1, 31)]
    return [(row, row[::-1]) for row in rows]


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair]) -> Tokenizer:
    file = tmp_path_factory.mktemp("pieces") / "tokenizer.model"
    bpe = SentencePiece(
        model_type="bpe", hard_vocab_limit=True, vocab_size=20, character_coverage=1.0, normalization="identity"
    )
    file.write_bytes(bpe.train(line for pair in pairs for line in pair))
    return Tokenizer(file)


@pytest.fixture
def subject(tokenizer: Tokenizer, tmp_path: Path) -> MakeSubject:
    """Builds a small model of some overrides; its weights are random and large enough to make a difference."""

    def make(*overrides: str) -> Subject:
        budget = ("budget.source_tokens=60", "budget.target_tokens=60", "budget.max_tokens=40")
        config = resolve(compose([*SIZES, *budget, "model.vocabulary=null", "decoding.max_len_offset=3", *overrides]))
        torch.manual_seed(7)
        model = build.model(config, len(tokenizer)).eval()
        for parameter in model.parameters():
            parameter.data.add_(0.3 * torch.randn(parameter.shape))
        run = RunDir(tmp_path / "runs" / "table3" / "base" / "seed1-0123456789")
        run.path.mkdir(parents=True, exist_ok=True)
        return Subject(run, config, model, tokenizer)

    return make


@pytest.fixture
def analysed(subject: MakeSubject, pairs: list[Pair]) -> Callable[..., tuple[Subject, Text]]:
    """The model of some overrides, and the thirty pairs."""

    def make(*overrides: str) -> tuple[Subject, Text]:
        made = subject(*overrides)
        return made, made.text(pairs)

    return make
