"""Vocabularies that sentencepiece has not learned: the bytes of UTF-8, and tokenizers that exist already.

The tokens of each follow PAD, BOS, EOS and UNK, which are étude's own, so that all of them are numbered four higher.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from etude.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, Vocabulary
from etude.errors import UserError
from etude.files import typed_path

SPECIAL = 1 + max(PAD, BOS, EOS, UNK)


@dataclass(frozen=True, kw_only=True)
class Bytes(Vocabulary):
    """The 256 bytes of UTF-8: any text, nothing to learn, nothing unknown."""

    def train(self, text: Iterable[str], *, keep_spaces: bool = False) -> bytes:
        """Return what `open_tokenizer` reads; nothing is learned."""
        if self.vocab_size != SPECIAL + 256:
            raise UserError(f"tokenizer.vocab_size={self.vocab_size}: bytes are {SPECIAL + 256} tokens: leave it out")
        return _written("bytes")


@dataclass(frozen=True, kw_only=True)
class Existing(Vocabulary):
    """A tokenizer that exists: a model of sentencepiece, a `tokenizer.json` of `tokenizers`, or a file of `tiktoken`.

    The `tokenizer.model` of a run is one, too, whose tokens keep their numbers. A file of `tiktoken` has no pattern by
    which a text is split before its bytes are merged.
    """

    file: str | None
    pattern: str | None  # of a file of tiktoken; None: GPT-2's
    sum: str | None = None  # the SHA-256 that the file is to have; a run's config records that of its file

    def further_options(self) -> dict[str, Any]:
        """Return the SHA-256 of the file, so that another makes another store, and whether it knows unknown tokens."""
        content = self._content()
        knows_unknown = {"unknown": True} if _names_unknown(content) else {}
        return {"file": None, "sum": hashlib.sha256(content).hexdigest(), **knows_unknown}

    def train(self, text: Iterable[str], *, keep_spaces: bool = False) -> bytes:
        """Return what `open_tokenizer` reads; nothing is learned.

        Raises:
            UserError: the file is missing or of another kind.
        """
        content = self._content()
        if content.lstrip()[:1] == b"{":
            is_ours = content.startswith(b'{"kind": ')
            if is_ours and json.loads(content)["kind"] == "two":
                raise UserError(
                    f"tokenizer.file={self.file} holds two vocabularies, of source and target: name a file with one"
                )
            if is_ours:
                return content
            return _written("tokenizers", content=content.decode(), unknown=_names_unknown(content))
        if processor := _sentencepiece(content):
            if keep_spaces and processor.piece_to_id("\n") == processor.unk_id():
                raise UserError(
                    f"tokenizer.file={self.file} was learned from lines, and cannot give back running text with its "
                    "spaces: say tokenizer=bpe, or name another file"
                )
            ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
            numbered = ids == (PAD, BOS, EOS, UNK)
            return content if numbered else _written("sentencepiece", content=base64.b64encode(content).decode())
        return _written("tiktoken", content=base64.b64encode(content).decode(), pattern=self.pattern)

    def _content(self) -> bytes:
        if self.file is None:
            raise UserError(
                "tokenizer.file must name a model of sentencepiece, a tokenizer.json of `tokenizers`, or a file of "
                "`tiktoken`"
            )
        try:
            content = typed_path(self.file).read_bytes()
        except OSError as error:
            raise UserError(f"tokenizer.file: cannot read {self.file}: {error.strerror}") from error
        if self.sum not in (None, hashlib.sha256(content).hexdigest()):
            raise UserError(
                f"tokenizer.file={self.file} is another vocabulary than this run has: restore the file, or give the "
                "command of the run again, which makes another one"
            )
        return content


def open_tokenizer(file: Path) -> Tokenizer:
    """Open a tokenizer of any kind.

    Raises:
        UserError: the file is missing or damaged, or the package that it is of is not installed.
    """
    try:
        raw = file.read_bytes()
        is_ours = raw[:1] == b"{"
        node = json.loads(raw) if is_ours else {}
    except (OSError, ValueError):  # a missing file is sentencepiece's matter, whose message tells it
        return Tokenizer(file)
    if not is_ours:
        return Tokenizer(file)
    kinds = {"bytes": ByteTokenizer, "tokenizers": JsonTokenizer, "tiktoken": TiktokenTokenizer}
    return (kinds | {"sentencepiece": PieceTokenizer, "two": TwoTokenizers})[node["kind"]](file, node)


def open_two(source: Path, target: Path) -> Tokenizer:
    """Open two models of sentencepiece, of source and of target lines, as one tokenizer."""
    return TwoTokenizers(target, json.loads(write_two(source.read_bytes(), target.read_bytes())))


def write_two(source: bytes, target: bytes) -> bytes:
    """Return what `open_tokenizer` reads: two models of sentencepiece, of source and target lines."""
    return _written("two", source=base64.b64encode(source).decode(), target=base64.b64encode(target).decode())


def _sentencepiece(content: bytes) -> Any:
    """Load a model of sentencepiece; None if these are the bytes of something else."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(content)
    except (OSError, RuntimeError):
        return None
    return processor


def _written(kind: str, **values: Any) -> bytes:
    return json.dumps({"kind": kind, **values}, ensure_ascii=False).encode()


class ByteTokenizer(Tokenizer):
    """The bytes of UTF-8."""

    def __init__(self, model_file: Path, node: dict[str, Any]) -> None:
        self.model_file = model_file

    def __len__(self) -> int:
        return SPECIAL + 256

    def encode(self, text: str) -> list[int]:
        """Convert a text to tokens, without BOS and EOS."""
        return (np.frombuffer(text.encode(), np.uint8).astype(np.int64) + SPECIAL).tolist()

    def encode_all(self, lines: Iterable[str]) -> list[list[int]]:
        """Convert many texts to tokens."""
        return [self.encode(line) for line in lines]

    def unknown(self, text: str) -> str:
        """Return "": nothing is unknown, or the package does not say what."""
        return ""

    def pieces(self, text: str) -> list[str]:
        """Return what each token of one line stands for, with `▁` for a space."""
        return self.subwords(self.encode(text))

    def subwords(self, tokens: Sequence[int]) -> list[str]:
        """Convert tokens to the strings that they stand for, with `▁` for a space."""
        return [self.decode([token]).replace(" ", "▁") for token in tokens]

    def decode(self, tokens: Sequence[int]) -> str:
        """Convert tokens to text; PAD, BOS and EOS become nothing, UNK and numbers beyond the vocabulary " ⁇ "."""
        parts: list[str] = []
        run: list[int] = []
        for token in [*tokens, EOS]:
            if SPECIAL <= token < len(self):
                run.append(int(token) - SPECIAL)
                continue
            parts.append(self._decode(run))
            run = []
            if token == UNK or token >= len(self):
                parts.append(" ⁇ ")
        return "".join(parts)

    def _decode(self, tokens: list[int]) -> str:
        return bytes(tokens).decode("utf-8", errors="replace")


class TwoTokenizers(Tokenizer):
    """A vocabulary of source lines and one of target lines; PAD, BOS, EOS and UNK have the same numbers in both."""

    def __init__(self, model_file: Path, node: dict[str, Any]) -> None:
        super().__init__(model_file, base64.b64decode(node["target"]))
        self._source = Tokenizer(model_file, base64.b64decode(node["source"]))

    @property
    def source(self) -> Tokenizer:
        """The vocabulary of source lines."""
        return self._source

    def __len__(self) -> int:
        """The size V of the larger one, as many rows as each embedding has."""
        return max(len(self._source), super().__len__())


class PieceTokenizer(ByteTokenizer):
    """A model of sentencepiece that another program has learned, with special tokens of its own."""

    def __init__(self, model_file: Path, node: dict[str, Any]) -> None:
        super().__init__(model_file, node)
        self._made = _sentencepiece(base64.b64decode(node["content"]))

    def __len__(self) -> int:
        return SPECIAL + self._made.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Convert a text to tokens, without BOS and EOS."""
        return self.encode_all([text])[0]

    def encode_all(self, lines: Iterable[str]) -> list[list[int]]:
        """Convert many texts to tokens, with a thread per core."""
        unknown = self._made.unk_id()
        found = self._made.encode(list(lines), num_threads=-1)
        return [[UNK if token == unknown else SPECIAL + token for token in one] for one in found]

    def unknown(self, text: str) -> str:
        """Return the characters of one line that became UNK."""
        cut = zip(self.encode(text), self.pieces(text), strict=True)
        return "".join(piece for token, piece in cut if token == UNK).replace("▁", "")

    def pieces(self, text: str) -> list[str]:
        """Return what each token of one line stands for, UNK too, with `▁` for the space before a word."""
        return self._made.encode(text, out_type=str)

    def subwords(self, tokens: Sequence[int]) -> list[str]:
        """Convert tokens to their strings in the vocabulary, with `▁` for the space before a word."""
        return [self._made.id_to_piece(self._their(token)) for token in tokens]

    def decode(self, tokens: Sequence[int]) -> str:
        """Convert tokens to text; PAD, BOS and EOS become nothing, UNK and numbers beyond the vocabulary " ⁇ "."""
        return self._made.decode([self._their(token) for token in tokens if token not in (PAD, BOS, EOS)])

    def _their(self, token: int) -> int:
        return int(token) - SPECIAL if SPECIAL <= token < len(self) else self._made.unk_id()


class JsonTokenizer(ByteTokenizer):
    """A `tokenizer.json` of the package `tokenizers`."""

    def __init__(self, model_file: Path, node: dict[str, Any]) -> None:
        super().__init__(model_file, node)
        try:
            import tokenizers
        except ImportError as error:
            raise _package_is_missing("tokenizers") from error
        try:
            self._made = tokenizers.Tokenizer.from_str(node["content"])
        except Exception as error:  # the package raises nothing narrower
            raise UserError(f"tokenizer.file is no tokenizer.json that `tokenizers` reads: {error}") from error
        self._made.no_truncation()
        self._made.no_padding()
        model = json.loads(node["content"])["model"]
        named = model.get("unk_token")
        unknown = model.get("unk_id") if named is None else self._made.token_to_id(named)
        self._unknown = unknown if node.get("unknown") else None  # runs of before were trained with a row for it
        self._size = SPECIAL + 1 + max(self._made.get_vocab().values(), default=-1)

    def __len__(self) -> int:
        return self._size

    def encode(self, text: str) -> list[int]:
        """Convert a text to tokens, without BOS and EOS."""
        return self.encode_all([text])[0]

    def encode_all(self, lines: Iterable[str]) -> list[list[int]]:
        """Convert many texts to tokens, with a thread per core."""
        found = self._made.encode_batch(list(lines), add_special_tokens=False)
        return [[UNK if token == self._unknown else SPECIAL + token for token in one.ids] for one in found]

    def _decode(self, tokens: list[int]) -> str:
        return self._made.decode(tokens, skip_special_tokens=False) if tokens else ""


class TiktokenTokenizer(ByteTokenizer):
    """A file of the package `tiktoken`: on each line the bytes of a token in base64, and its number."""

    def __init__(self, model_file: Path, node: dict[str, Any]) -> None:
        super().__init__(model_file, node)
        try:
            import tiktoken
            from tiktoken_ext.openai_public import r50k_pat_str
        except ImportError as error:
            raise _package_is_missing("tiktoken") from error
        try:
            lines = map(bytes.split, base64.b64decode(node["content"]).splitlines())
            ranks = {base64.b64decode(token): int(rank) for token, rank in filter(None, lines)}
            pattern = node["pattern"] or r50k_pat_str
            self._made = tiktoken.Encoding("etude", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
            self._size = SPECIAL + 1 + max(ranks.values())
        except Exception as error:  # the package raises nothing narrower
            raise UserError(
                f"tokenizer.file is no model of sentencepiece, no tokenizer.json and no file of `tiktoken`: {error}"
            ) from error

    def __len__(self) -> int:
        return self._size

    def encode(self, text: str) -> list[int]:
        """Convert a text to tokens, without BOS and EOS."""
        return [SPECIAL + token for token in self._made.encode_ordinary(text)]

    def encode_all(self, lines: Iterable[str]) -> list[list[int]]:
        """Convert many texts to tokens, with a thread per core."""
        found = self._made.encode_ordinary_batch(list(lines), num_threads=os.cpu_count() or 1)
        return [[SPECIAL + token for token in one] for one in found]

    def _decode(self, tokens: list[int]) -> str:
        return self._made.decode(tokens)


def _names_unknown(content: bytes) -> bool:
    """Return whether a file is a `tokenizer.json` with a token for what it does not know."""
    if content.lstrip()[:1] != b"{":
        return False
    with suppress(ValueError):
        model = json.loads(content).get("model") or {}
        return any(model.get(key) is not None for key in ("unk_token", "unk_id"))
    return False


def _package_is_missing(name: str) -> UserError:
    return UserError(f"this tokenizer needs the package {name}: pip install 'etude[tokenizers]'")
