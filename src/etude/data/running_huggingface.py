"""`data=text_huggingface`: running text that the package `datasets` can load; see `etude.data.huggingface`."""

import json
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from etude.data.corpus import SPLITS
from etude.data.huggingface import HuggingFaceCorpus
from etude.data.running_text import RunningText
from etude.errors import UserError


class TextOfHuggingFace(RunningText):
    """A dataset, each row of which is a document, in one column.

    Args:
        path, name, revision, data_files, splits, download_dir: see `conf/data/huggingface.yaml`.
        column: which one holds the text.
        documents, stride: see `RunningText`.
        vocab_size, input_sentence_size: for the tokenizer.
    """

    def __init__(
        self,
        *,
        path: str | None,
        name: str | None,
        revision: str | None,
        data_files: dict[str, Any] | None,
        splits: dict[str, str] | None,
        column: str,
        documents: str,
        stride: int | None,
        download_dir: str,
        vocab_size: int,
        input_sentence_size: int | None,
    ) -> None:
        super().__init__(documents=documents, stride=stride)
        self.vocab_size, self.input_sentence_size = vocab_size, input_sentence_size
        self._rows = _Documents(
            path=path,
            name=name,
            revision=revision,
            data_files=data_files,
            splits=splits,
            columns={"source": column},
            languages=["text", "text"],
            download_dir=download_dir,
            vocab_size=vocab_size,
            input_sentence_size=input_sentence_size,
        )

    def text_fingerprint(self, splits: Sequence[str] = SPLITS) -> str:
        """Hash the copied text."""
        return self._rows.fingerprint_of(splits)

    def fetch(self) -> None:
        """Load the dataset and copy the column."""
        self._rows.fetch()

    def texts(self, split: str) -> Iterator[Iterable[str]]:
        """Yield the rows of a split, in the order of the dataset."""
        return ([json.loads(line)] for line in self._rows.read_values(split))


class _Documents(HuggingFaceCorpus):
    """The rows, each of which is written as a string of JSON, so that it is a line."""

    form = ("json",)
    key = "data.column"

    def write_value(self, value: Any) -> str:
        """Return a document as a string of JSON."""
        if not isinstance(value, str | None):
            raise UserError(f"data.column must name a column of text, and one holds {reprlib.repr(value)}")
        return json.dumps(value or "")
