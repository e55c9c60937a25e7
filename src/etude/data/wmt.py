"""The news translation tasks of WMT: text of several sources in tar archives, and test sets of one year each.

What is trained on goes through the rules of `cleaning.py`, source by source; what is validated and tested on stays as
it is. Archives are downloaded, or read from a folder of the user's (`data.root`), and the members in use are unpacked
into `download_dir` once. A checksum of null leaves the archive to be pinned by what was read (see `source_file.py`):
then the text has no fingerprint before `etude prepare` has downloaded it.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from etude.data.archive import unpack
from etude.data.cleaning import KEPT, Cleaning
from etude.data.corpus import Corpus, Pair, digest, require_test_set, two_languages
from etude.data.lines import parallel_lines
from etude.data.sgm import sgm_pairs
from etude.data.source_file import SourceFile
from etude.errors import UserError

logger = logging.getLogger(__name__)


class WMT(Corpus):
    """The sources and test sets that `conf/data/wmt14_en_de.yaml` lists; `valid` and `test` name two of the latter."""

    def __init__(
        self,
        *,
        languages: Sequence[str],
        sources: Mapping[str, Mapping[str, str | None]],
        test_sets: Mapping[str, Mapping[str, str | None]],
        valid: str,
        test: str,
        max_words: int,
        max_ratio: float,
        root: str | None,
        url: str,
        download_dir: str,
        vocab_size: int,
        input_sentence_size: int | None,
    ) -> None:
        self.languages = two_languages(languages)
        self.vocab_size, self.input_sentence_size = vocab_size, input_sentence_size
        self.cleaning = Cleaning(max_words=max_words, max_ratio=max_ratio)
        self._downloads = Path(download_dir).expanduser()
        self._root = Path(root).expanduser() if root else None  # an empty environment variable names no folder
        self._url = url.rstrip("/")
        self._sources = _checked("sources", sources)
        self._test_sets = _checked("test_sets", test_sets)
        self._chosen = {"valid": valid, "test": test}
        self._counts: dict[str, Counter[str]] = {}

    def fingerprint(self) -> str:
        """A hash of the checksums, of what is taken out of the archives, and of the rules of cleaning."""
        return self._fingerprint(*self._chosen)

    def training_fingerprint(self) -> str:
        """The same without the test set to report on."""
        return self._fingerprint("valid")

    def _fingerprint(self, *splits: str) -> str:
        nodes = [*map(self._test_set, splits), *self._sources.values()]
        return digest([[self._identity(node) for node in nodes], vars(self.cleaning)])

    def fetch(self) -> None:
        """Download the archives in use, unless the user gave a folder, and unpack what is needed of them."""
        for node in (*self._sources.values(), *map(self._test_set, self._chosen)):
            if node["sum"] is None or not self._folder(node).is_dir():  # what is pinned and unpacked may be deleted
                self._archive(node).fetch()
            self._unpacked(node)

    def pairs(self, split: str) -> Iterator[Pair]:
        """The pairs of "train", one source after another, cleaned; or those of a test set."""
        if split == "train":
            return self._train()
        node = self._test_set(split)
        read = sgm_pairs if str(node["source"]).endswith(".sgm") else parallel_lines
        return read(*self._unpacked(node))

    def source_counts(self) -> dict[str, dict[str, int]]:
        """How many pairs of each source are kept, and how many each rule left out."""
        return {name: dict(counts) for name, counts in self._counts.items()}

    def _train(self) -> Iterator[Pair]:
        for name, node in self._sources.items():
            counts: Counter[str] = Counter()
            for pair in parallel_lines(*self._unpacked(node)):
                fate = self.cleaning.sort(*pair)
                counts[fate] += 1
                if fate == KEPT:
                    yield pair
            self._counts[name] = counts

    def _test_set(self, split: str) -> Mapping[str, str | None]:
        require_test_set(split, self._chosen[split], self._test_sets)
        return self._test_sets[self._chosen[split]]

    def _archive(self, node: Mapping[str, str | None]) -> SourceFile:
        name = str(node["archive"])
        return SourceFile(
            url=f"{self._url}/{name}",
            path=(self._root or self._downloads) / name,
            sum=node["sum"],
            owned=self._root is not None,
            records=self._downloads,
        )

    def _identity(self, node: Mapping[str, str | None]) -> list[str | None]:
        return [self._archive(node).identity(), node["source"], node["target"]]

    def _folder(self, node: Mapping[str, str | None]) -> Path:
        return self._downloads / "unpacked" / digest(self._identity(node))

    def _unpacked(self, node: Mapping[str, str | None]) -> tuple[Path, Path]:
        """The two files of a source or test set, source and target, outside their archive."""
        folder = self._folder(node)
        if not folder.is_dir():
            archive = self._archive(node).verified()
            logger.info("unpacking %s", archive)
            names = dict(zip((str(node["source"]), str(node["target"])), self.languages, strict=True))
            unpack(archive, names, folder)
        return folder / self.languages[0], folder / self.languages[1]


def _checked(key: str, nodes: Mapping[str, Mapping[str, str | None]] | None) -> dict[str, dict[str, str | None]]:
    """The nodes under `data.<key>`, if there are any and each says what it must."""
    if not nodes:
        raise UserError(f"data.{key} is empty: name at least one, with its archive, source, target and sum")
    for name, node in nodes.items():
        if not node or not all(node.get(word) for word in ("archive", "source", "target")) or "sum" not in node:
            raise UserError(
                f"data.{key}.{name} must say archive, source, target and sum (null: not known); to leave it out, "
                f"write ~data.{key}.{name}"
            )
    return {name: dict(node) for name, node in nodes.items()}
