import errno
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from etude.data import store as store_module
from etude.data.corpus import Pair
from etude.data.running_files import TextFiles
from etude.data.store import TokenStore, prepare
from etude.data.tokenizer import UNK, SentencePiece
from etude.data.vocabularies import Bytes, ByteTokenizer
from etude.errors import UserError

from .conftest import sentences

MAX_TOKENS = 64


def left_in(cache: Path) -> list[str]:
    return sorted(file.name for file in cache.iterdir() if file.suffix != ".lock")


def test_a_second_call_opens_what_the_first_one_made(make_corpus: Callable, bpe: SentencePiece, tmp_path: Path) -> None:
    corpus, again = make_corpus(), make_corpus()
    first = prepare(corpus, bpe, tmp_path, MAX_TOKENS)
    second = prepare(again, bpe, tmp_path, MAX_TOKENS)
    assert first.path == second.path == TokenStore(first.path).path
    assert left_in(tmp_path) == [first.path.name]
    assert (corpus.fetched, again.fetched, again.asked) == (1, 0, [])
    assert len(first.path.name) == 16
    assert first.vocab_size == len(first.tokenizer) == 60


def test_the_address_follows_text_tokenizer_and_limits(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    others = [
        (make_corpus(train=[("the cat", "tac eht")] * 50), replace(bpe, vocab_size=20), MAX_TOKENS),
        (make_corpus(), bpe, MAX_TOKENS),
        (make_corpus(), replace(bpe, vocab_size=61), MAX_TOKENS),
        (make_corpus(), replace(bpe, normalization="nfkc"), MAX_TOKENS),
        (make_corpus(), bpe, 63),
    ]
    paths = {prepare(corpus, tokenizer, tmp_path, limits).path for corpus, tokenizer, limits in others}
    assert len(paths) == len(others)


def test_a_text_that_other_code_of_ones_own_has_prepared_is_opened_with_a_warning(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS, {"own.py": "01"}).path
    assert prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS, {"own.py": "01"}).path == first
    assert "other code" not in caplog.text
    assert prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS, {"own.py": "23"}).path == first
    assert f"the text in {first} was prepared by other code of a corpus or tokenizer of yours than" in caplog.text


class OwnSentencePiece(SentencePiece):
    """A class of the user's, which may read a text in a way of its own."""


def test_a_tokenizer_of_ones_own_has_a_store_of_its_own(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    mine = prepare(make_corpus(), OwnSentencePiece(**vars(bpe)), tmp_path, MAX_TOKENS)
    assert prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS).path != mine.path


def test_what_the_corpus_cannot_read_is_no_matter_of_the_cache(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make_corpus()
    monkeypatch.setattr(corpus, "fetch", lambda: Path("no_such_text").read_text())
    with pytest.raises(UserError, match=r"ListCorpus cannot give its text: .*: 'no_such_text'"):
        prepare(corpus, bpe, tmp_path, MAX_TOKENS)


def test_the_same_store_is_made_byte_for_byte_anywhere(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    one, two = (prepare(make_corpus(), bpe, tmp_path / place, MAX_TOKENS).path for place in "ab")
    assert one.name == two.name
    assert {f.name: f.read_bytes() for f in one.iterdir()} == {f.name: f.read_bytes() for f in two.iterdir()}


def test_of_a_large_text_the_subwords_are_learned_from_pairs_evenly_spread_over_it(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = make_corpus()
    every_third = [pair for n, pair in enumerate(corpus.splits["train"]) if n % 3 == 2]
    some = replace(bpe, input_sentence_size=201)
    with caplog.at_level(logging.INFO, "etude"):
        store = prepare(corpus, some, tmp_path / "some", MAX_TOKENS)
    assert "learned from 100 of 300 training pairs, evenly spread" in caplog.text
    alone = bpe.train(line for pair in every_third for line in pair)
    assert (store.path / "tokenizer.model").read_bytes() == alone
    assert len(store.split("train")) == 300


def test_a_limit_that_the_text_does_not_reach_changes_nothing(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    whole, limited = (
        prepare(make_corpus(), replace(bpe, input_sentence_size=most), tmp_path, MAX_TOKENS).path
        for most in (None, 600)
    )
    assert whole.name != limited.name
    assert (whole / "tokenizer.model").read_bytes() == (limited / "tokenizer.model").read_bytes()
    assert "input_sentence_size" not in (whole / "meta.json").read_text(), "stores of before go by the same address"


@pytest.mark.parametrize("damage", ["missing meta", "torn meta", "changed meta", "missing file", "torn file"])
def test_a_damaged_store_is_recognised_and_made_again(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, damage: str
) -> None:
    path = prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS).path
    file = path / ("meta.json" if "meta" in damage else "train.target.pieces.npy")
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"60", b"50") if "changed" in damage else whole[: len(whole) // 2])
    if "missing" in damage:
        file.unlink()
    with pytest.raises(UserError, match=r"no complete token store .*etude prepare"):
        TokenStore(path)
    assert prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS).path == path
    assert file.read_bytes() == whole


def flip(file: Path) -> None:
    """One bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("train.target.pieces.npy", lambda store: store.split("train")),
        ("test.source.ends.npy", lambda store: store.split("test")),
        ("valid.target.txt", lambda store: store.text("valid")),
        ("tokenizer.model", lambda store: store.tokenizer),
    ],
)
def test_a_store_damaged_at_the_same_size_is_named_when_it_is_first_read(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str, read: Callable[[TokenStore], object]
) -> None:
    path = prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS).path
    flip(path / name)
    store = prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS)
    told = f"{path / name} is damaged, .*: delete the folder {path}, and the same command prepares the text again"
    for look in (read, TokenStore.verify):
        with pytest.raises(UserError, match=told):
            look(store)
    others = {"train", "valid", "test"} - {name.partition(".")[0]}
    assert all(len(store.split(other)) for other in others)
    shutil.rmtree(path)
    read(prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS))


def test_a_split_is_compared_with_what_was_written_once(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS)
    read: list[str] = []
    real = store_module.checksum
    monkeypatch.setattr(store_module, "checksum", lambda file: read.append(file.name) or real(file))
    store.split("train")
    store.split("train")
    assert read == [f"train.{side}.{what}.npy" for side in ("source", "target") for what in ("ends", "pieces")]


@pytest.mark.parametrize("killed_at", [0, 7, 19])
def test_being_killed_halfway_leaves_nothing(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    corpus = make_corpus()

    def killed(split: str) -> Iterator[Pair]:
        for number, pair in enumerate(corpus.splits[split]):
            if split == "valid" and number == killed_at:
                raise KeyboardInterrupt
            yield pair

    with monkeypatch.context() as patch:
        patch.setattr(corpus, "pairs", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(corpus, bpe, tmp_path, MAX_TOKENS)
    assert left_in(tmp_path) == []
    path = prepare(corpus, bpe, tmp_path, MAX_TOKENS).path
    path.rename(path.with_name(f".{path.name}.building"))  # as a process leaves it that has no time to clean up
    assert len(prepare(corpus, bpe, tmp_path, MAX_TOKENS).split("valid")) == 20
    assert left_in(tmp_path) == [path.name]


def test_a_text_that_is_edited_while_it_is_prepared_is_not_filed_under_its_old_name(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    corpus = make_corpus()
    read = corpus.pairs
    corpus.pairs = lambda split: corpus.splits.update(test=[("new", "wen")]) or read(split)
    with pytest.raises(UserError, match="the text was changed while it was being prepared: start again"):
        prepare(corpus, bpe, tmp_path, MAX_TOKENS)
    corpus.pairs = read
    assert prepare(corpus, bpe, tmp_path, MAX_TOKENS).text("test") == (["new"], ["wen"])
    assert len([*tmp_path.glob("[!.]*")]) == 1


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for place in (np, "save"), (Path, "write_text"), (Path, "write_bytes"):
        with monkeypatch.context() as patch:
            patch.setattr(*place, full)
            with pytest.raises(UserError, match="No space left on device"):
                prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS)
        assert left_in(tmp_path) == []


def test_a_cache_that_cannot_be_written_names_the_key(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot prepare .*set cache_dir to another place"):
        prepare(make_corpus(), bpe, tmp_path / "file", MAX_TOKENS)


SCRIPT = """
import logging, sys
from pathlib import Path
from etude.data.store import prepare
from etude.data.text_files import FilesCorpus
from etude.data.tokenizer import SentencePiece
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
none = {"source": None, "target": None, "tsv": None}
files = {**none, "tsv": sys.argv[1], "columns": None}
corpus = FilesCorpus(**files, valid=none, test=none, holdout=50, languages="ab", vocab_size=60)
sizes = {"vocab_size": 60, "hard_vocab_limit": True, "character_coverage": 1.0}
bpe = SentencePiece(model_type="bpe", normalization="identity", **sizes)
assert len(prepare(corpus, bpe, Path(sys.argv[2]), 64).split("valid")) == 50
assert "torch" not in sys.modules
"""


DYING = """
import os, signal, time
import etude.data.store as store
store.write_split = lambda *_: (print("dying", flush=True), time.sleep(2), os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_of_four_processes_one_prepares_whoever_is_killed_in_the_middle(
    make_corpus: Callable, tmp_path: Path, killed: bool
) -> None:
    tsv, cache = tmp_path / "text.tsv", tmp_path / "cache"
    tsv.write_text("".join(f"{n} {s}\t{t}\n" for n, (s, t) in enumerate(make_corpus().splits["train"])))

    def started(program: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, str(tsv), str(cache)], stdout=subprocess.PIPE, text=True
        )

    if killed:
        dying = started(DYING + SCRIPT)
        assert dying.stdout is not None
        assert any(line == "dying\n" for line in dying.stdout)  # it has the lock, and half a store
    processes = [started(SCRIPT) for _ in range(4)]
    printed = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sum("prepared in" in text for text in printed) == 1
    assert len(left_in(cache)) == 1
    if killed:
        assert dying.wait() == -9


def test_a_process_that_waits_says_so(
    make_corpus: Callable,
    bpe: SentencePiece,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = prepare(make_corpus(), bpe, tmp_path / "elsewhere", MAX_TOKENS).path
    other = FileLock(tmp_path / f".{path.name}.lock")
    other.acquire()
    logger = logging.getLogger("etude.data.folder")
    monkeypatch.setattr(logger, "info", lambda message, *_: other.release() if "waiting" in message else None)
    assert prepare(make_corpus(), bpe, tmp_path, MAX_TOKENS).path.name == path.name
    assert not other.is_locked


def running(place: Path, **options: str | int | None) -> TextFiles:
    return TextFiles(
        **{"files": str(place), "valid": [0.5, 0.7], "test": [0.7, 1.0], "separator": None, "documents": "cross"}  # type: ignore[arg-type]
        | {"stride": None, "seed": 1, "sentences": {}, "vocab_size": 60, "input_sentence_size": None}
        | options
    )


def test_running_text_is_prepared_once_for_all_contexts_that_are_made_of_it(
    bpe: SentencePiece, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{source}, {target}.\n" for source, target in sentences(200, 1)))
    texts = [running(tmp_path / "a.txt"), running(tmp_path / "a.txt", documents="mask", stride=3)]
    stores = [prepare(text, bpe, tmp_path / "cache", context) for text, context in zip(texts, (12, 20), strict=True)]
    assert stores[0].path == stores[1].path
    assert [store.fingerprint for store in stores] == [text.fingerprint() for text in texts]
    assert [store.split("train").target_lengths.max() for store in stores] == [12, 20]
    assert [store.split("valid").target_counts.max() for store in stores] == [12, 20]
    counts = stores[0].meta["splits"]
    whole = "".join(
        stores[0].tokenizer.decode(np.load(stores[0].path / f"{n}.text.pieces.npy").tolist()) for n in counts
    )
    assert whole == (tmp_path / "a.txt").read_text()
    assert sum(count["bytes"] for count in counts.values()) == len(whole.encode())
    assert all(stores[0].split(name).target_counts.sum() == count["tokens"] for name, count in counts.items())


def test_subwords_of_a_large_text_are_learned_from_parts_spread_over_it(
    bpe: SentencePiece, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{'ab' if n % 400 else 'xy'} " * 5 + "\n" for n in range(20_000)))
    few = replace(bpe, input_sentence_size=90, hard_vocab_limit=False)
    caplog.set_level(logging.INFO)
    store = prepare(running(tmp_path / "a.txt"), few, tmp_path / "cache", 12)
    assert "learned from 90 of 159 thousand characters" in caplog.text
    assert UNK not in store.tokenizer.encode("ab xy\n")


def test_a_tokenizer_with_another_vocabulary_than_the_store_is_refused(
    bpe: SentencePiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("one two three four " * 50)
    store = prepare(running(tmp_path / "a.txt"), Bytes(vocab_size=260), tmp_path / "cache", 12)
    monkeypatch.setattr(ByteTokenizer, "__len__", lambda self: 261)
    with pytest.raises(
        UserError, match="tokenised with 260 tokens, and its tokenizer has 261 today: delete that folder"
    ):
        store.tokenizer  # noqa: B018


def test_a_split_without_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ab")
    with pytest.raises(UserError, match="the valid text is empty: give a text with words in it"):
        prepare(running(tmp_path / "a.txt"), Bytes(vocab_size=260), tmp_path / "cache", 2)
