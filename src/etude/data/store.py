"""Text turned into numbers once, and shared by every run that wants the same numbers.

cache_dir/<16 hexadecimal digits>/       a hash of the corpus, the tokenizer's config and the limits
    train.source.pieces.npy  …ends.npy   the tokens, memory-mapped (the same for target, valid, test)
    valid.source.txt  valid.target.txt   the text that valid was made from (the same for test)
    tokenizer.model
    meta.json                            counts, file sizes and checksums; written last
"""

import json
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import AcquireReturnProxy, FileLock, Timeout

from etude.data.corpus import SPLITS, TRAINING, Corpus, digest
from etude.data.splits import Limits, TokenSplit, describe_counts, read_text, write_split
from etude.data.tokenizer import SentencePiece, Tokenizer
from etude.errors import UserError
from etude.files import checksum, link_or_copy, write_json

__all__ = ["Limits", "TokenSplit", "TokenStore", "find_prepared", "prepare"]

logger = logging.getLogger(__name__)

FORMAT = 2
"""Raise it when the files or the rules change: older stores are then made anew."""


class TokenStore:
    """A finished store, opened for reading.

    What is read is held against its checksums once: a split when it is first asked for, which takes about two seconds a
    gigabyte, a millisecond for the embedded corpus. What reads a damaged file raises a UserError.

    Attributes:
        path: its folder
        meta: what `meta.json` says
        vocab_size: V, the size of the vocabulary
    """

    def __init__(self, path: Path) -> None:
        """Open the store in the folder `path`.

        Raises:
            UserError: there is none, or it is incomplete.
        """
        meta = _meta(path)
        if meta is None:
            raise UserError(f"there is no complete token store in {path}; run `etude prepare`")
        self.path, self.meta = path, meta
        self.vocab_size: int = meta["vocab_size"]
        self._verified: set[str] = set()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary that the text was cut with."""
        self.verify("tokenizer.")
        return Tokenizer(self.path / "tokenizer.model")

    def split(self, name: str) -> TokenSplit:
        """The tokens of "train", "valid" or "test"."""
        self.verify(f"{name}.")
        return TokenSplit(self.path, name, self.vocab_size)

    def text(self, name: str) -> tuple[list[str], list[str]]:
        """The source lines and the references of "valid" or "test", row by row, as they were written."""
        self.verify(f"{name}.")
        return read_text(self.path, name)

    def verify(self, beginning: str = "") -> None:
        """See to it that the files whose names begin so, all if nothing is said, hold what was written to them.

        Raises:
            UserError: one does not.
        """
        for name, written in self.meta["sums"].items():
            if name.startswith(beginning) and name not in self._verified:
                if checksum(self.path / name) != written:
                    raise UserError(
                        f"{self.path / name} is damaged, for it no longer holds what was written to it: "
                        f"delete the folder {self.path}, and the same command prepares the text again"
                    )
                self._verified.add(name)


def prepare(corpus: Corpus, tokenizer: SentencePiece, cache_dir: Path, limits: Limits) -> TokenStore:
    """The store for this corpus, vocabulary and limits: opened if it is there, made first if not.

    Many processes may ask at once: one makes it, the others wait. One that is killed leaves nothing that counts.

    Raises:
        UserError: from the corpus or the tokenizer; a split without a usable pair; a full disk; the text is changed
            meanwhile.
    """
    path = cache_dir
    try:
        key, path = _place_of_fetched(corpus, tokenizer, cache_dir, limits)
        if _meta(path) is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _acquire(_lock(path)):
                if _meta(path) is None:
                    _make(path, corpus, tokenizer, limits, key)
    except OSError as error:
        raise UserError(
            f"cannot prepare {path}: {error}; free some space or set cache_dir to another place, then start again"
        ) from error
    return TokenStore(path)


def find_prepared(corpus: Corpus, tokenizer: SentencePiece, cache_dir: Path, limits: Limits) -> TokenStore | None:
    """The store for this corpus, vocabulary and limits, or None where it has not been made.

    Raises:
        UserError: the corpus cannot be had.
    """
    _, path = _place(corpus, tokenizer, cache_dir, limits)
    return None if _meta(path) is None else TokenStore(path)


def _place(corpus: Corpus, tokenizer: SentencePiece, cache_dir: Path, limits: Limits) -> tuple[dict[str, Any], Path]:
    """What a store is made from, and the folder that follows from it."""
    pieces = asdict(tokenizer) | tokenizer.further_options()
    config = {name: value for name, value in pieces.items() if value is not None}
    key = {"format": FORMAT, "corpus": corpus.fingerprint(), "tokenizer": config, "limits": asdict(limits)}
    return key, cache_dir.expanduser() / digest(key)


def _place_of_fetched(
    corpus: Corpus, tokenizer: SentencePiece, cache_dir: Path, limits: Limits
) -> tuple[dict[str, Any], Path]:
    """The same, after fetching a text that has no fingerprint before."""
    try:
        return _place(corpus, tokenizer, cache_dir, limits)
    except UserError:
        corpus.fetch()
        return _place(corpus, tokenizer, cache_dir, limits)


def _make(path: Path, corpus: Corpus, tokenizer: SentencePiece, limits: Limits, key: dict[str, Any]) -> None:
    """Build the store beside its place, then move it there. The caller holds the lock of `path`."""
    _remove_leftovers(path)
    began = time.monotonic()
    corpus.fetch()
    building = path.with_name(f".{path.name}.building")
    building.mkdir()
    try:
        key = key | {"training": corpus.training_fingerprint()}
        model, alike = building / "tokenizer.model", _of_same_training(path.parent, key)
        if alike:
            logger.info("taking over all but the test text from %s", alike.path)
            for name in alike.meta["files"]:
                if not name.startswith("test."):
                    link_or_copy(alike.path / name, building / name)
        else:
            logger.info("learning %d subwords", tokenizer.vocab_size)
            model.write_bytes(tokenizer.train(_sentences(corpus, tokenizer.input_sentence_size)))
        learned, splits = Tokenizer(model), {name: alike.meta["splits"][name] for name in TRAINING} if alike else {}
        missing = [name for name in SPLITS if name not in splits]
        logger.info("tokenising %s", ", ".join(missing))
        splits |= {name: write_split(building, name, corpus.pairs(name), learned, limits) for name in missing}
        files = sorted(building.iterdir())
        sizes = {file.name: file.stat().st_size for file in files}
        sums = {file.name: checksum(file) for file in files}
        meta = {**key, "vocab_size": len(learned), "splits": splits, "files": sizes, "sums": sums}
        if sources := alike.meta.get("sources") if alike else corpus.source_counts():
            meta["sources"] = sources
        write_json(building / "meta.json", meta | {"sum": digest(meta)})
        if corpus.fingerprint() != key["corpus"]:
            raise UserError("the text was changed while it was being prepared: start again when it is complete")
        shutil.rmtree(path, ignore_errors=True)
        building.rename(path)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    summary = "; ".join(f"{name} {describe_counts(counts)}" for name, counts in splits.items())
    logger.info("prepared in %.1f s: %s; %d subwords; %s", time.monotonic() - began, summary, len(learned), path)


def _of_same_training(folder: Path, key: dict[str, Any]) -> TokenStore | None:
    """A whole store among those in a folder that was made from the same, its test text apart."""
    for file in sorted(folder.glob("*/meta.json")):
        meta = _meta(file.parent) or {}
        if all(meta.get(name) == key[name] for name in key if name != "corpus"):
            with suppress(UserError, OSError):  # damaged, or removed meanwhile
                store = TokenStore(file.parent)
                for name in (*TRAINING, "tokenizer"):
                    store.verify(f"{name}.")
                return store
    return None


def _sentences(corpus: Corpus, most: int | None) -> Iterator[str]:
    """Both sides of the training pairs, or of as many as make `most` sentences, evenly spread over the text.

    Which they are follows from the text alone; sentencepiece's own choice would differ from one time to the next.
    """
    taken = total = sum(1 for _ in filter(all, corpus.pairs("train"))) if most else 0
    if most and 2 * total > most:
        taken = max(1, most // 2)
        logger.info("the subwords are learned from %d of %d training pairs, evenly spread", taken, total)
    for number, pair in enumerate(filter(all, corpus.pairs("train"))):
        if taken == total or (number + 1) * taken // total > number * taken // total:
            yield from pair


def _meta(path: Path) -> dict[str, Any] | None:
    """What `meta.json` says, or None where the store is missing or torn."""
    try:
        meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
        whole = meta.pop("sum") == digest(meta)
        whole = whole and all((path / name).stat().st_size == size for name, size in meta["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return meta if whole else None


def _lock(path: Path) -> FileLock:
    return FileLock(path.with_name(f".{path.name}.lock"))


def _remove_leftovers(path: Path) -> None:
    """Remove what dead processes were building: the folders whose lock nobody else holds."""
    for leftover in path.parent.glob(".*.building"):
        final = path.with_name(leftover.name.removeprefix(".").removesuffix(".building"))
        try:
            with nullcontext() if final == path else _lock(final).acquire(timeout=0):
                shutil.rmtree(leftover, ignore_errors=True)
        except Timeout:
            logger.debug("%s is being built by another process", final)


def _acquire(lock: FileLock) -> AcquireReturnProxy:
    """Take `lock` until the `with` ends, saying so where another process has it."""
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        logger.info("waiting for another process that prepares the same data")
        return lock.acquire()
