"""The news translation tasks of WMT: training text from several sources in tar archives, and a test set per year.

Training text is filtered by the rules of `cleaning.py`, source by source; validation and test text is not changed.
Archives are downloaded, or read from a folder of the user's (`data.root`), and the members in use are unpacked into
`download_dir` once. With a checksum of null, the checksum of the archive that was read is used (see `source_file.py`):
then the text has no fingerprint before `etude prepare` has downloaded it.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from etude.data.archive import unpack
from etude.data.cleaning import KEPT, Cleaning
from etude.data.corpus import Corpus, Pair, digest, require_test_set, two_languages
from etude.data.lines import parallel_lines
from etude.data.sgm import sgm_pairs
from etude.data.source_file import SourceFile
from etude.data.splits import SIDES
from etude.errors import UserError

logger = logging.getLogger(__name__)


class WMT(Corpus):
    """Sources and test sets as in `conf/data/wmt14_en_de.yaml`; `valid` and `test` name two of the test sets."""

    def __init__(
        self,
        *,
        languages: list[str],
        sources: dict[str, dict[str, str | None]],
        test_sets: dict[str, dict[str, str | None]],
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
        self._sources = _validate_nodes("sources", sources)
        self._test_sets = _validate_nodes("test_sets", test_sets)
        self._chosen = {"valid": valid, "test": test}
        self._counts: dict[str, Counter[str]] = {}
        self._check_direction()

    def fingerprint(self) -> str:
        """Hash the checksums, the archive members in use, the cleaning rules and the languages."""
        return self._fingerprint(*self._chosen)

    def training_fingerprint(self) -> str:
        """Hash the same without the test set."""
        return self._fingerprint("valid")

    def _fingerprint(self, *splits: str) -> str:
        nodes = [*map(self._test_set, splits), *self._sources.values()]
        return digest([[self._identity(node) for node in nodes], vars(self.cleaning), list(self.languages)])

    def fetch(self) -> None:
        """Download the archives in use, unless the user gave a folder, and unpack the members in use."""
        for node in (*self._sources.values(), *map(self._test_set, self._chosen)):
            if node["sum"] is None or not self._folder(node).is_dir():  # once unpacked, a known archive may be deleted
                self._archive(node).fetch()
            self._unpack(node)

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the pairs of "train", filtered, one source after another; or those of a test set."""
        if split == "train":
            return self._training_pairs()
        node = self._test_set(split)
        read = sgm_pairs if str(node["source"]).endswith(".sgm") else parallel_lines
        return read(*self._unpack(node))

    def source_counts(self) -> dict[str, dict[str, int]]:
        """Count, per source, the pairs kept and those that each rule left out."""
        return {name: dict(counts) for name, counts in self._counts.items()}

    def _training_pairs(self) -> Iterator[Pair]:
        for name, node in self._sources.items():
            counts: Counter[str] = Counter()
            for pair in parallel_lines(*self._unpack(node)):
                outcome = self.cleaning.classify(*pair)
                counts[outcome] += 1
                if outcome == KEPT:
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
        return self._downloads / "unpacked" / digest([*self._identity(node), *SIDES])

    def _unpack(self, node: Mapping[str, str | None]) -> tuple[Path, Path]:
        """Unpack a source or test set unless that was done; return its two files, source and target."""
        folder = self._folder(node)
        if not folder.is_dir():
            archive = self._archive(node).verify()
            logger.info("unpacking %s", archive)
            unpack(archive, {str(node[side]): side for side in SIDES}, folder)
        return folder / SIDES[0], folder / SIDES[1]

    def _check_direction(self) -> None:
        """Check that no source or test set has the two languages the other way round.

        Raises:
            UserError: one has.
        """
        turned = {side: f".{language}" for side, language in zip(SIDES, reversed(self.languages), strict=True)}
        for name, node in {**self._sources, **self._test_sets}.items():
            if all(str(node[side]).removesuffix(".sgm").removesuffix(".gz").endswith(turned[side]) for side in SIDES):
                raise UserError(
                    f"data.languages=[{','.join(self.languages)}], but the source of {name} is {node['source']}: "
                    "to turn the direction, exchange source and target of every source and test set, too"
                )


def _validate_nodes(key: str, nodes: Mapping[str, Mapping[str, str | None]] | None) -> dict[str, dict[str, str | None]]:
    """Check that `data.<key>` has nodes and that each has all its keys; return a copy."""
    if not nodes:
        raise UserError(f"data.{key} is empty: name at least one, with its archive, source, target and sum")
    for name, node in nodes.items():
        if not node or not all(node.get(word) for word in ("archive", "source", "target")) or "sum" not in node:
            raise UserError(
                f"data.{key}.{name} must say archive, source, target and sum (null: not known); to leave it out, "
                f"write ~data.{key}.{name}"
            )
    return {name: dict(node) for name, node in nodes.items()}
