"""What every variation is, for counts; small texts, prepared."""

from pathlib import Path
from typing import Any

import pytest
from tests.pieces import sentence_piece
from tests.variations import variations

from etude.data.store import TokenStore, prepare
from etude.data.text_files import FilesCorpus
from etude.data.tokenizer import Vocabulary
from etude.study.study import load_study

Pairs = list[tuple[str, str]]


def make_store(
    folder: Path,
    pairs: Pairs,
    *,
    test: Pairs | None = None,
    max_tokens: int = 40,
    vocab_size: int = 60,
    tokenizer: Vocabulary | None = None,
    **learned: Any,
) -> TokenStore:
    """The store of some pairs, which are the valid text too and, unless others are given, the test text."""
    files = {}
    for name, rows in {"same": pairs, "test": test or pairs}.items():
        (folder / name).write_text("".join(f"{source}\t{target}\n" for source, target in rows))
        files[name] = {"source": None, "target": None, "tsv": str(folder / name)}
    splits = {"valid": files["same"], "test": files["test"]}
    corpus = FilesCorpus(
        **files["same"], **splits, holdout=1, columns=None, languages=["en", "xx"], vocab_size=vocab_size
    )
    pieces = sentence_piece(vocab_size, hard_vocab_limit=False, **learned)
    return prepare(corpus, tokenizer or pieces, folder / "cache", max_tokens)


def company(variation: str) -> list[str]:
    """The variation with the overrides that it needs beside it, as the study of all axes says."""
    arm = variation.removeprefix("model/").replace("=", "-")
    return load_study("axes").arms.get(arm, variation.split())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `variation` runs once for each."""
    if "variation" in metafunc.fixturenames:
        metafunc.parametrize("variation", [company(v) for v in variations()], ids=variations())
