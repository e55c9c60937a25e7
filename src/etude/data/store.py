"""Prepare a corpus (tokenizer and tokens) once, and share it among all runs with the same data settings.

cache_dir/<16 hexadecimal digits>/       a hash of the corpus, the tokenizer's config and the limits
    train.source.pieces.npy  …ends.npy   the tokens, memory-mapped (the same for target, valid, test)
    valid.source.txt  valid.target.txt   the text of valid, before tokenisation (the same for test)
    train.text.pieces.npy  …ends.npy     of running text these alone (the same for valid, test)
    tokenizer.model
    meta.json                            counts, file sizes and checksums; written last
"""

import json
import logging
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, cast

from etude.data.contexts import Contexts, describe_stream, lines_to_learn, write_stream
from etude.data.corpus import SPLITS, Corpus, Text, digest, first_pair, read_pairs
from etude.data.folder import make_folder
from etude.data.running_text import RunningText
from etude.data.splits import TokenSplit, describe_counts, read_text, write_split
from etude.data.tokenizer import Tokenizer, Vocabulary
from etude.data.vocabularies import open_tokenizer, write_two
from etude.errors import UserError
from etude.files import checksum, disk_mistake, write_json

__all__ = ["Contexts", "Split", "TokenSplit", "TokenStore", "find_prepared", "prepare"]

Split = TokenSplit | Contexts

logger = logging.getLogger(__name__)

FORMAT = 2
"""Increase when the files or the rules change: older stores are then prepared again."""


class TokenStore:
    """A complete store, opened for reading.

    Files are checked against their checksums once: those of a split on its first use, which takes about two seconds per
    gigabyte, a millisecond for the embedded corpus. Reading a damaged file raises a UserError.

    Attributes:
        path: its folder
        meta: the content of `meta.json`
        vocab_size: V
    """

    def __init__(self, path: Path, text: Text | None = None, context: int = 0) -> None:
        """Open the store in the folder `path`.

        Args:
            path: the folder.
            text: what it was prepared of; running text says how its contexts are made.
            context: the most tokens of a context of running text.

        Raises:
            UserError: there is none, or it is not complete.
        """
        meta = _read_meta(path)
        if meta is None:
            raise UserError(f"there is no complete token store in {path}; run `etude prepare`")
        self.path, self.meta = path, meta
        self.vocab_size: int = meta["vocab_size"]
        self._text, self._context = text, context
        self._verified: set[str] = set()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the text was tokenised with.

        Raises:
            UserError: it has another vocabulary today, with another version of its package, say.
        """
        self.verify("tokenizer.")
        found = open_tokenizer(self.path / "tokenizer.model")
        if len(found) != self.vocab_size:
            raise UserError(
                f"the text in {self.path} was tokenised with {self.vocab_size:,} tokens, and its tokenizer has "
                f"{len(found):,} today: delete that folder, and the same command prepares the text again"
            )
        return found

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the text when it was prepared, as `Text.fingerprint` returns it."""
        prepared: str = self.meta["corpus"]
        return self._text.of_contexts(prepared) if isinstance(self._text, RunningText) else prepared

    @property
    def is_running(self) -> bool:
        """Whether it holds running text."""
        return "documents" in self.meta["splits"]["train"]

    def split(self, name: str) -> Split:
        """Open the tokens of "train", "valid" or "test".

        Raises:
            UserError: a split of running text is shorter than a context.
        """
        self.verify(f"{name}.")
        if isinstance(text := self._text, RunningText):
            how, stride = text.documents, text.stride
            return Contexts(self.path, name, self.vocab_size, context=self._context, documents=how, stride=stride)
        return TokenSplit(self.path, name, self.vocab_size)

    def text(self, name: str) -> tuple[list[str], list[str]]:
        """Read the source lines and the references of "valid" or "test", row by row, before tokenisation."""
        self.verify(f"{name}.")
        return read_text(self.path, name)

    def verify(self, prefix: str = "") -> None:
        """Check the files whose names start with `prefix` (by default all) against their checksums.

        Raises:
            UserError: one differs.
        """
        for name, expected in self.meta["sums"].items():
            if name.startswith(prefix) and name not in self._verified:
                if checksum(self.path / name) != expected:
                    raise UserError(
                        f"{self.path / name} is damaged, for it no longer holds what was written to it: "
                        f"delete the folder {self.path}, and the same command prepares the text again"
                    )
                self._verified.add(name)


def prepare(text: Text, tokenizer: Vocabulary, cache_dir: Path, max_tokens: int, code: Any = None) -> TokenStore:
    """Open the store for this text, tokenizer and limit of tokens in a line (of running text, in a context).

    It is built first if there is none.

    Safe to call from many processes: one builds the store, the others wait. A process that is killed leaves no store.
    A store that other `code` of the user's has prepared, known by the SHA-256 of its files, is opened with a warning.

    Raises:
        UserError: from the corpus or the tokenizer; a split has no usable pair; the disk is full; the text changes
            meanwhile.
    """
    path = cache_dir = cache_dir.expanduser()
    try:
        try:
            key, path = _locate(text, tokenizer, cache_dir, max_tokens)
        except UserError:  # it has no fingerprint yet
            text.fetch()
            key, path = _locate(text, tokenizer, cache_dir, max_tokens)
        with make_folder(path, _read_meta) as building:
            if building:
                _build(building, path, text, tokenizer, max_tokens, key | ({"own_files": code} if code else {}))
    except OSError as error:
        what = f"cannot prepare {path}: {error}; free some space or set cache_dir to another place, then start again"
        if not (disk_mistake(error) or str(error.filename).startswith(str(cache_dir))):  # what the corpus reads, then
            what = f"data: {type(text).__qualname__} cannot give its text: {error}"
        raise UserError(what) from error
    store = TokenStore(path, text, max_tokens)
    if store.meta.get("own_files", code) != code:
        logger.warning(
            "the text in %s was prepared by other code of a corpus or tokenizer of yours than today's: raise a number "
            "in the corpus's fingerprint if it yields another text now; if not, delete that folder",
            path,
        )
    return store


def find_prepared(text: Text, tokenizer: Vocabulary, cache_dir: Path, max_tokens: int) -> TokenStore | None:
    """Open the store for this corpus, tokenizer and limit of tokens in a line; None if it has not been built.

    Raises:
        UserError: the corpus is not available.
    """
    _, path = _locate(text, tokenizer, cache_dir, max_tokens)
    return None if _read_meta(path) is None else TokenStore(path, text, max_tokens)


def _locate(text: Text, tokenizer: Vocabulary, cache_dir: Path, max_tokens: int) -> tuple[dict[str, Any], Path]:
    """Return the key that identifies a store, and the folder that is named by its hash."""
    options = asdict(tokenizer) | tokenizer.further_options()
    config = {name: value for name, value in options.items() if value is not None and (name, value) != ("shared", True)}
    if not type(tokenizer).__module__.startswith("etude."):  # a class of the user's may read a text as it likes
        config["class"] = f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__}"
    key = {"format": FORMAT, "tokenizer": config}
    if isinstance(text, RunningText):  # whatever the contexts that are made of it
        key |= {"corpus": text.text_fingerprint()}
    else:
        key |= {"corpus": text.fingerprint(), "limits": {"max_tokens": max_tokens}}
    return key, cache_dir.expanduser() / digest(key)


def _build(building: Path, path: Path, text: Text, tokenizer: Vocabulary, max_tokens: int, key: dict[str, Any]) -> None:
    """Write the files of the store `path` into the folder `building`."""
    began = time.monotonic()
    text.fetch()
    model, limit = building / "tokenizer.model", tokenizer.input_sentence_size
    logger.info("learning %d subwords", tokenizer.vocab_size)
    if isinstance(text, RunningText):
        model.write_bytes(tokenizer.train(lines_to_learn(text, limit), keep_spaces=True))
    elif not getattr(tokenizer, "shared", True):
        sides = (islice(_sentences(cast(Corpus, text), limit), side, None, 2) for side in range(2))
        model.write_bytes(write_two(*map(tokenizer.train, sides)))
    else:
        model.write_bytes(tokenizer.train(_sentences(cast(Corpus, text), limit)))
    vocabulary = open_tokenizer(model)
    logger.info("tokenising")
    meta = {**key, "vocab_size": len(vocabulary)}
    if isinstance(text, RunningText):
        meta["splits"] = {name: write_stream(building, text, name, vocabulary) for name in SPLITS}
    else:
        corpus = cast(Corpus, text)
        pairs = {name: read_pairs(corpus, name) for name in SPLITS}
        meta["splits"] = {name: write_split(building, name, pairs[name], vocabulary, max_tokens) for name in SPLITS}
        meta["first_pair"] = first_pair(corpus)
    files = sorted(building.iterdir())
    meta["files"] = {file.name: file.stat().st_size for file in files}
    meta["sums"] = {file.name: checksum(file) for file in files}
    meta["sources"] = text.source_counts()
    write_json(building / "meta.json", meta | {"sum": digest(meta)})
    if _locate(text, tokenizer, path.parent, max_tokens)[1] != path:
        raise UserError("the text was changed while it was being prepared: start again when it is complete")
    summary = "; ".join(f"{name} {describe(counts)}" for name, counts in meta["splits"].items())
    logger.info("prepared in %.1f s: %s; %d subwords; %s", time.monotonic() - began, summary, len(vocabulary), path)


def describe(counts: dict[str, int]) -> str:
    """Format the counts of a split."""
    return describe_stream(counts) if "documents" in counts else describe_counts(counts)


def _sentences(corpus: Corpus, limit: int | None) -> Iterator[str]:
    """Yield both sides of the training pairs, at most `limit` sentences, evenly spread over the text.

    The selection depends on the text alone; sentencepiece's own sampling would differ from one call to the next.
    """
    taken = total = sum(1 for _ in filter(all, read_pairs(corpus, "train"))) if limit else 0
    if limit and 2 * total > limit:
        taken = max(1, limit // 2)
        logger.info("the subwords are learned from %d of %d training pairs, evenly spread", taken, total)
    for number, pair in enumerate(filter(all, read_pairs(corpus, "train"))):
        if taken == total or (number + 1) * taken // total > number * taken // total:
            yield from pair


def _read_meta(path: Path) -> dict[str, Any] | None:
    """Read `meta.json`; None if the store is missing or incomplete."""
    try:
        meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
        intact = meta.pop("sum") == digest(meta)
        intact = intact and all((path / name).stat().st_size == size for name, size in meta["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return meta if intact else None
