"""`data=files`: a user's own text, as two parallel files or one TSV, plain or gzipped.

If no validation or test text is given, `holdout` pairs for each are held out of the training text: the pairs whose
source sentences have the smallest hashes. This choice looks random, is the same on every machine, and one line more or
less in the files moves at most one pair of each split. A source sentence that is held out occurs neither in the
training text nor in another held-out split: its repetitions are left out altogether.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import Any

from etude.data.corpus import Corpus, Pair, digest, first_reference, two_languages, warn_of_repeated
from etude.data.lines import content_sum, parallel_lines, tsv_lines
from etude.errors import UserError
from etude.files import typed_path

logger = logging.getLogger(__name__)


class FilesCorpus(Corpus):
    """The user's own text files, as `conf/data/files.yaml` explains.

    If all three keys of `valid` or `test` are null, pairs are held out of the training text. `columns` are those of
    source and target in every TSV; if null, they are the first two, which must not hold numbers alone. Several targets
    are several references of valid and test; the first of several columns is trained on.
    """

    def __init__(
        self,
        *,
        source: str | None,
        target: str | None,
        tsv: str | None,
        valid: Mapping[str, str | list[str] | None],
        test: Mapping[str, str | list[str] | None],
        holdout: int,
        languages: list[str],
        vocab_size: int,
        columns: dict[str, int | str | list[int | str] | None] | None,
    ) -> None:
        train: dict[str, str | list[str] | None] = {"source": source, "target": target, "tsv": tsv}
        self._files = {"train": train, "valid": dict(valid), "test": dict(test)}
        self.holdout = holdout
        self.languages = two_languages(languages)
        self.vocab_size = vocab_size
        self._chosen = any(column is not None for column in (columns or {}).values())
        self._columns = _all_columns(columns or {}) if self._chosen else (1, 2)
        self._key: list[list[int | str]] = [] if self._columns == (1, 2) else [list(self._columns)]

    def fingerprint(self) -> str:
        """Hash the content of the files, read as a stream, and the languages, which the paper's BLEU depends on."""
        sums = {split: [content_sum(path) for path in files] for split, files in self._split_files.items()}
        return digest(
            [sums, self.holdout if len(sums) < 3 else 0, list(self.languages), *self._key, *self._of_held_out]
        )

    def training_fingerprint(self) -> str:
        """Hash the same without the test files; if there are none, the number of held-out pairs counts."""
        training = {split: files for split, files in self._split_files.items() if split != "test"}
        sums = {split: [content_sum(path) for path in files] for split, files in training.items()}
        lacking = [split for split in self._files if split not in self._split_files]
        held_out = self.holdout if lacking else 0
        return digest([sums, lacking, held_out, list(self.languages), *self._key, *self._of_held_out])

    @property
    def _of_held_out(self) -> list[str]:
        """What the fingerprints have where held-out pairs have several references, of which earlier ones had one."""
        return ["references"] if len(self._split_files) < 3 and len(self._columns) > 2 else []

    def fetch(self) -> None:
        """All is here; say how much of what a model shall not have seen stands in the training text too.

        Raises:
            UserError: a column of a TSV holds numbers alone, and `columns` does not say that it is text.
        """
        for split, files in self._split_files.items():
            if len(files) == 1 and not self._chosen:
                _refuse_numbers(files[0], [*islice(self._read(split), 1, 1000)])  # the first may be a header
        warn_of_repeated(self, [split for split in self._split_files if split != "train"])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the pairs of `split`, in the order of the files that they come from."""
        if split in self._split_files and (split != "train" or len(self._split_files) == 3):
            return self._read(split)
        return self._divide(split)

    @cached_property
    def _split_files(self) -> dict[str, list[Path]]:
        """The files of each split that has any: source and targets, or one TSV."""
        files: dict[str, list[Path]] = {}
        for split, paths in self._files.items():
            given = {key: name if isinstance(name, list) else [name] for key, name in paths.items() if name is not None}
            if given.keys() in ({"tsv"}, {"source", "target"}):
                named = [name for key in ("source", "target", "tsv") for name in given.get(key, ())]
                files[split] = [typed_path(name) for name in named]
            elif given or split == "train":
                key = "data" if split == "train" else f"data.{split}"
                raise UserError(f"data=files needs {key}.source and {key}.target, two files, or {key}.tsv alone")
        return files

    def _read(self, split: str, *, references: bool = False) -> Iterator[Pair]:
        """Yield the pairs of the files of a split; those of the training files with all `references` or with one."""
        source, *targets = self._split_files[split]
        columns = self._columns[: 2 if split == "train" and not references else None]
        return parallel_lines(source, *targets) if targets else tsv_lines(source, columns)

    def _divide(self, split: str) -> Iterator[Pair]:
        """Yield the pairs of the training files that belong to `split` after the hold-out."""
        held_out = self._split_of_held_out
        seen: set[int] = set()
        for source, target in self._read("train", references=split != "train"):
            key = _hash(source)
            if split == "train":
                if key not in held_out:
                    yield source, target
            elif held_out.get(key) == split and key not in seen and first_reference(target):
                seen.add(key)
                yield source, target

    @cached_property
    def _split_of_held_out(self) -> dict[int, str]:
        """The split of each held-out source sentence, by its hash, for the splits without files."""
        lacking = [split for split in self._files if split not in self._split_files]
        wanted = self.holdout * len(lacking)
        sentences = Counter(_hash(source) for source, target in self._read("train") if source and target)
        if not 0 < 2 * wanted <= len(sentences):
            most = len(sentences) // (2 * len(lacking))
            way_out = f"set it to a number from 1 to {most}" if most else "give more text"
            raise UserError(
                f"data.holdout={self.holdout} takes {wanted} pairs for {' and '.join(lacking)} out of the "
                f"{len(sentences)} different ones of the training text; {way_out}, or give files "
                f"({', '.join(f'data.{split}.tsv' for split in lacking)})"
            )
        chosen = nsmallest(wanted, sentences)
        repeats = sum(sentences[key] for key in chosen) - wanted
        left_out = f", and leaving out {repeats} that repeat their sources" if repeats else ""
        logger.info("holding out %d pairs of the training text for %s%s", wanted, " and ".join(lacking), left_out)
        return {key: lacking[rank // self.holdout] for rank, key in enumerate(chosen)}


def _all_columns(columns: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Return the columns of source and targets from `data.columns`.

    Raises:
        UserError: one of them is missing, or no column.
    """
    targets = columns.get("target")
    found = (columns.get("source"), *(targets if isinstance(targets, list) and targets else [targets]))
    for column in found:
        if not (isinstance(column, str) or (type(column) is int and column > 0)):
            raise UserError(
                f"data.columns={dict(columns)} must give source and target, each by number from 1 on or by name in the "
                "first line of the TSV: data.columns.source=2 data.columns.target=3"
            )
    return found


def _refuse_numbers(file: Path, pairs: list[Pair]) -> None:
    """Check that neither column holds numbers alone, which are rather scores or ids than sentences.

    Raises:
        UserError: one does.
    """
    for number, side in enumerate(("source", "target"), start=1):
        cells = [pair[number - 1] for pair in pairs if all(pair)]
        if cells and all(map(_is_number, cells)):
            raise UserError(
                f"{file}: column {number}, the {side}, holds numbers alone, such as {cells[0]}: say which columns are "
                "text, by number or by name in the first line (data.columns.source=2 data.columns.target=3); "
                "data.columns.source=1 data.columns.target=2 trains on it as it is"
            )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _hash(sentence: str) -> int:
    """Hash a sentence as the tokenizer reads it: any white space is one space."""
    return int.from_bytes(hashlib.blake2b(" ".join(sentence.split()).encode(), digest_size=8).digest())
