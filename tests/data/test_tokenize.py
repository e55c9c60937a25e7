"""Several processes tokenise what one would, to the byte; none is left behind."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import active_children
from pathlib import Path

import pytest

from etude.data import tokenize
from etude.data.corpus import Pair
from etude.data.splits import Limits
from etude.data.store import TokenStore, prepare
from etude.data.tokenizer import SentencePiece
from etude.errors import UserError

LIMITS = Limits(max_tokens=64)


def test_processes_that_help_make_the_same_store_byte_for_byte(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = ("the cat " * 50, "tac eht " * 50)
    train = [*make_corpus().splits["train"], ("", "x"), long] * 3
    alone = prepare(make_corpus(train=train), bpe, tmp_path / "alone", LIMITS).path
    monkeypatch.setattr(tokenize, "CHUNK_SIZE", 50)
    monkeypatch.setattr(tokenize, "usable_cores", lambda: 2)
    spread: list[str] = []
    real = tokenize._tokenize_in_processes
    monkeypatch.setattr(
        tokenize, "_tokenize_in_processes", lambda chunks, name, *rest: spread.append(name) or real(chunks, name, *rest)
    )
    helped = prepare(make_corpus(train=train), bpe, tmp_path / "helped", LIMITS).path
    assert spread == ["train"]
    assert {f.name: f.read_bytes() for f in alone.iterdir()} == {f.name: f.read_bytes() for f in helped.iterdir()}


def test_a_process_that_is_killed_while_it_helps_is_one_sentence_and_leaves_nothing(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenize, "MIN_PARALLEL_CHUNKS", 1)
    monkeypatch.setattr(tokenize, "CHUNK_SIZE", 50)
    monkeypatch.setattr(tokenize, "usable_cores", lambda: 2)
    corpus = make_corpus()

    def pairs(split: str) -> Iterator[Pair]:
        for pair in corpus.splits[split]:
            for helper in active_children():
                helper.kill()
            yield pair

    monkeypatch.setattr(corpus, "pairs", pairs)
    with pytest.raises(UserError, match="a process that helped to tokenise the text was killed"):
        prepare(corpus, bpe, tmp_path, LIMITS)
    assert [file for file in tmp_path.iterdir() if file.suffix != ".lock"] == []


HELPED = """
import sys, time
from pathlib import Path
from multiprocessing import active_children
from etude.data import tokenize
from etude.data.tokenizer import Tokenizer
tokenize.MIN_PARALLEL_CHUNKS, tokenize.CHUNK_SIZE, tokenize.usable_cores = 1, 1, lambda: 2
chunks = tokenize.tokenize(
    [("the cat", "tac eht")] * 50, "train", Tokenizer(Path(sys.argv[1])), tokenize.Limits(max_tokens=9)
)
next(chunks)
print(*(child.pid for child in active_children()), flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc, to find processes")
def test_processes_that_help_end_with_the_one_that_is_killed(store: TokenStore) -> None:
    command = [sys.executable, "-c", HELPED, str(store.path / "tokenizer.model")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        helpers = process.stdout.readline().split()
        process.kill()
    assert helpers
    for _ in range(200):
        alive = [pid for pid in helpers if Path("/proc", pid, "status").exists() and not _is_zombie(pid)]
        if not alive:
            break
        time.sleep(0.1)
    assert not alive


def _is_zombie(pid: str) -> bool:
    return "State:\tZ" in Path("/proc", pid, "status").read_text()
