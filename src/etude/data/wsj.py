"""The Wall Street Journal part of the Penn Treebank (Marcus et al. 1993), as a corpus of words and trees.

Its text is licensed (LDC99T42), so it is read from a folder of the user's, in the usual sections: 02-21 for training,
22 for validation, 23 for testing. Trees are normalised as usual, without empty elements and functional tags. For the
semi-supervised setting of section 6.3, trees from other files, such as a parser's, follow those of the training set.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from etude.data.corpus import SPLITS, Pair, SplitCorpus, digest
from etude.data.lines import content_sum
from etude.data.trees import linearize, normalize, read_trees, words
from etude.errors import UserError

VERSION = 1
"""The version of the linearisation. Increase it when a change of `etude.data.trees` changes a line."""

_ENDINGS = {".mrg", ".parse"}
_SECTION = re.compile(r"(?:^|/)(?:wsj_)?(\d\d)(?:\d\d)?(?=[/.])")  # matches 02/wsj_0201.mrg, wsj_0201.mrg and 02.parse


class Wsj(SplitCorpus):
    """Sections of trees in a folder, as `conf/data/wsj.yaml` explains."""

    def __init__(
        self, *, root: str | None, sections: dict[str, list[int]], silver: Sequence[str], vocab_size: int
    ) -> None:
        self.languages = ("en", "tree")
        self.vocab_size = vocab_size
        self.root = Path(root).expanduser() if root else None
        self.sections = {split: _section_range(split, sections.get(split)) for split in SPLITS}
        if isinstance(silver, str | int):
            raise UserError(f"data.silver={silver} must list files of trees, such as data.silver=[more.parse]")
        self.silver = [Path(file).expanduser() for file in silver]

    def fingerprint_of(self, splits: Sequence[str]) -> str:
        """Hash the content of the files, read as a stream."""
        return digest([VERSION, {split: [content_sum(file) for file in self._files(split)] for split in splits}])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the words of each sentence and the line of its tree, in file order; silver trees come last."""
        for file in self._files(split):
            for tree in filter(None, map(normalize, read_trees(file))):
                yield " ".join(words(tree)), linearize(tree)

    def _files(self, split: str) -> list[Path]:
        gold = [file for section in self.sections[split] for file in self._section_files.get(section, [])]
        return [*gold, *(self.silver if split == "train" else [])]

    @cached_property
    def _section_files(self) -> dict[int, list[Path]]:
        """Find the files of each section.

        Raises:
            UserError: there is no folder, or it lacks a section.
        """
        if self.root is None or not self.root.is_dir():
            lacking = f"there is no folder {self.root}" if self.root else "no folder is named"
            raise UserError(
                f"data=wsj: {lacking}; set data.root to one with the Wall Street Journal sections of the Penn Treebank "
                "(02/wsj_0201.mrg, or 02.parse); they are licensed and cannot be downloaded: data=treebank needs none"
            )
        by_section: dict[int, list[Path]] = {}
        for file in sorted(self.root.rglob("*")):
            section = _SECTION.search(file.relative_to(self.root).as_posix())
            if file.suffix in _ENDINGS and section:
                by_section.setdefault(int(section[1]), []).append(file)
        wanted = {section for sections in self.sections.values() for section in sections}
        if missing := sorted(wanted - by_section.keys()):
            raise UserError(
                f"data.root={self.root} has no .mrg or .parse file of section {', '.join(f'{n:02}' for n in missing)}: "
                "name the folder that holds all sections, or other data.sections"
            )
        return by_section


def _section_range(split: str, sections: Any) -> range:
    """Return the sections of a split, given the first and the last.

    Raises:
        UserError: they are not two whole numbers in order.
    """
    match sections:
        case [int(first), int(last)] if first <= last:
            return range(first, last + 1)
    raise UserError(f"data.sections.{split}={sections} must name the first and the last section, such as [2,21]")
