"""`data=huggingface`: any parallel or plain text that the package `datasets` can load, from the hub or from files.

`etude prepare` copies the columns in use once into plain files in `download_dir`; nothing else needs the package, a
network, or the hub's cache. The fingerprint is of these files. The user's own files are copied again when they change;
for a dataset on the hub, `revision` selects the version.
"""

import json
import logging
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from etude.data.corpus import SPLITS, Pair, SplitCorpus, digest, two_languages, warn_of_repeated
from etude.data.folder import make_folder
from etude.data.lines import content_sum, parallel_lines, read_lines
from etude.errors import UserError, did_you_mean

logger = logging.getLogger(__name__)

SUMS = "sums.json"


class HuggingFaceCorpus(SplitCorpus):
    """A dataset as `conf/data/huggingface.yaml` explains. Without a target column the source is its own target."""

    form: tuple[str, ...] = ()  # how values are written as lines, if not as `_one_line` does
    key = "data.columns"  # that names the columns

    def __init__(
        self,
        *,
        path: str | None,
        name: str | None,
        revision: str | None,
        data_files: dict[str, Any] | None,
        splits: dict[str, str] | None,
        columns: dict[str, str | None] | None,
        languages: list[str],
        download_dir: str,
        vocab_size: int,
        input_sentence_size: int | None,
    ) -> None:
        self.languages = two_languages(languages)
        self.vocab_size, self.input_sentence_size = vocab_size, input_sentence_size
        self._path, self._downloads = path, Path(download_dir).expanduser()
        files = dict(data_files) if data_files else None
        self._load_arguments: dict[str, Any] = {"path": path, "name": name, "revision": revision, "data_files": files}
        self._splits = dict(splits or {})
        source, target = ((columns or {}).get(side) for side in ("source", "target"))
        self._columns = [source, target] if source and target else [source] if source else []

    def fingerprint_of(self, splits: Sequence[str]) -> str:
        """Hash the copied text, and the languages, which the paper's BLEU depends on."""
        try:
            sums = json.loads((self._folder / SUMS).read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(
                f"the text of data.path={self._path} has not been taken yet: run `etude prepare` with the same data"
            ) from error
        chosen = {name: content for name, content in sums.items() if name.partition(".")[0] in splits}
        return digest([chosen, list(self.languages)])

    def fetch(self) -> None:
        """Load the dataset and copy the columns in use; say how much of what is held out is trained on."""
        with make_folder(self._folder) as building:
            if building:
                for split in SPLITS:
                    self._write_columns(split, building)
                sums = {file.name: content_sum(file) for file in sorted(building.iterdir())}
                (building / SUMS).write_text(json.dumps(sums), encoding="utf-8")
        if building:
            warn_of_repeated(self, SPLITS[1:])  # a split may be a part of another

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the rows of a split, in the order of the dataset."""
        files = [self._folder / f"{split}.{number}" for number in range(len(self._columns))]
        return parallel_lines(files[0], files[-1])

    @property
    def _folder(self) -> Path:
        """The folder of the copied text, named by a hash of dataset, columns, splits and the state of local files."""
        if self._path is None or not self._columns:
            raise UserError(f"text of Hugging Face needs data.path, a dataset or a folder, and {self.key}")
        named = (self._load_arguments["data_files"] or {}).values()
        names = [self._path, *(name for some in named for name in ([some] if isinstance(some, str) else some))]
        found = [sorted(glob(name, recursive=True)) or [name] for name in names]  # noqa: PTH207 (it may be absolute)
        places = [Path(place) for some in found for place in some]
        files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
        stats = [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.is_file()]
        return self._downloads / digest([self._load_arguments, self._splits, self._columns, stats, *self.form])

    def _write_columns(self, split: str, folder: Path) -> None:
        """Write each column of a split to a file, one row per line."""
        if split not in self._splits:
            raise UserError(f"data.splits says nothing of {split}: name the dataset's own split, or a part of one")
        dataset = _load(self._load_arguments, self._splits[split]).flatten()
        for column in self._columns:
            if column not in dataset.column_names:
                near = did_you_mean(column, dataset.column_names)
                raise UserError(f"{self.key}: {self._path} has no column {column}; {near}")
        for number, column in enumerate(self._columns):
            with (folder / f"{split}.{number}").open("w", encoding="utf-8", newline="\n") as file:
                for rows in dataset.select_columns([column]).iter(batch_size=1000):
                    file.writelines(f"{self.write_value(value)}\n" for value in rows[column])

    def write_value(self, value: Any) -> str:
        """Return the line for a value of a column."""
        return _one_line(value)

    def read_values(self, split: str) -> Iterator[str]:
        """Yield the lines that were written for the values of the first column."""
        return read_lines(self._folder / f"{split}.0")


def _one_line(value: Any) -> str:
    """Write a value of a column as a line; a missing one is blank, the number 0 is not.

    Raises:
        UserError: the value is no line, but a list of words, for instance.
    """
    if isinstance(value, list | dict | bytes):
        raise UserError(
            f"data.columns must name columns of text, and one holds {reprlib.repr(value)}, a {type(value).__name__}: "
            "make it a line each, in files of yours"
        )
    return "" if value is None else " ".join(str(value).split())


def _load(arguments: Mapping[str, Any], split: str) -> Any:
    """Load a split of a dataset.

    Raises:
        UserError: the package is missing, or cannot load it.
    """
    try:
        import datasets
    except ImportError as error:
        raise UserError("data=huggingface needs datasets: pip install 'etude[huggingface]'") from error
    logger.info("loading %s, %s", arguments["path"], split)
    try:
        return datasets.load_dataset(**arguments, split=split)
    except Exception as error:  # a loader, the hub or the network may raise anything
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(f"datasets cannot load data.path={arguments['path']}, split {split}: {reason[0]}") from error
