"""The news translation tasks of WMT: training text from several sources in tar archives, and a test set per year.

Training text is filtered, source by source; validation and test text is not changed. Archives are downloaded, or read
from a folder of the user's (`data.root`), and the members in use are unpacked into `download_dir` once. With a checksum
of null, the checksum of the archive that was read is used (see `SourceFile`): then the text has no fingerprint before
`etude prepare` has downloaded it.
"""

import logging
import shutil
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from etude.data.corpus import Pair, SplitCorpus, digest, require_test_set, two_languages
from etude.data.download import SourceFile
from etude.data.folder import make_folder
from etude.data.lines import parallel_lines, sgm_pairs
from etude.data.splits import SIDES
from etude.errors import UserError, did_you_mean

logger = logging.getLogger(__name__)

Node = Mapping[str, str | None]
"""A source or a test set: its archive, the members source and target, and the checksum of the archive."""

_KEPT = "pairs"


class WMT(SplitCorpus):
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
        self._max_words, self._max_ratio = max_words, max_ratio
        self._downloads = Path(download_dir).expanduser()
        self._root = Path(root).expanduser() if root else None  # an empty environment variable names no folder
        self._url = url.rstrip("/")
        self._sources = _validate_nodes("sources", sources)
        self._test_sets = _validate_nodes("test_sets", test_sets)
        self._chosen = {"valid": valid, "test": test}
        self._counts: dict[str, Counter[str]] = {}
        self._check_direction()

    def fingerprint_of(self, splits: Sequence[str]) -> str:
        """Hash the checksums, the archive members in use, the rules of filtering and the languages."""
        nodes = [*(self._test_set(split) for split in self._chosen if split in splits), *self._sources.values()]
        rules = {"max_words": self._max_words, "max_ratio": self._max_ratio}
        return digest([[self._identity(node) for node in nodes], rules, list(self.languages)])

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
                outcome = classify(*pair, self._max_words, self._max_ratio)
                counts[outcome] += 1
                if outcome == _KEPT:
                    yield pair
            self._counts[name] = counts

    def _test_set(self, split: str) -> Node:
        require_test_set(split, self._chosen[split], self._test_sets)
        return self._test_sets[self._chosen[split]]

    def _archive(self, node: Node) -> SourceFile:
        name = str(node["archive"])
        return SourceFile(
            url=f"{self._url}/{name}",
            path=(self._root or self._downloads) / name,
            sum=node["sum"],
            owned=self._root is not None,
            records=self._downloads,
        )

    def _identity(self, node: Node) -> list[str | None]:
        return [self._archive(node).identity(), node["source"], node["target"]]

    def _folder(self, node: Node) -> Path:
        return self._downloads / "unpacked" / digest([*self._identity(node), *SIDES])

    def _unpack(self, node: Node) -> tuple[Path, Path]:
        """Unpack a source or test set unless that was done; return its two files, source and target."""
        with make_folder(folder := self._folder(node)) as building:
            if building:
                archive = self._archive(node).verify()
                logger.info("unpacking %s", archive)
                unpack(archive, {str(node[side]): side for side in SIDES}, building)
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


def _validate_nodes(key: str, nodes: Mapping[str, Node] | None) -> dict[str, Node]:
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


def classify(source: str, target: str, max_words: int, max_ratio: float) -> str:
    """Return "pairs" for a pair that is kept, else the name of the first rule that it breaks.

    A pair is "blank" if a side has no word, "long" if one has more than `max_words`, and "uneven" if one has more than
    `max_ratio` times as many as the other.
    """
    fewer, more = sorted((len(source.split()), len(target.split())))
    if not fewer:
        return "blank"
    if more > max_words:
        return "long"
    return "uneven" if more > max_ratio * fewer else _KEPT


def describe_source(counts: Mapping[str, int]) -> str:
    """Format the counts of a source: "997 of 1,000 pairs (2 blank, 1 long left out)"."""
    left_out = ", ".join(f"{number:,} {rule}" for rule, number in sorted(counts.items()) if rule != _KEPT)
    kept = f"{counts.get(_KEPT, 0):,} of {sum(counts.values()):,} pairs"
    return f"{kept} ({left_out} left out)" if left_out else kept


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Copy some members of a tar archive of unknown origin, compressed or not, into a folder.

    No path of the archive is ever written to: the caller names each file.

    Args:
        archive: the tar file.
        members: path inside the archive -> file name in `folder`.
        folder: an existing folder.

    Raises:
        UserError: the archive is broken, lacks a member, or has one whose path or link points outside.
    """
    seen = []
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                tarfile.data_filter(member, str(folder))  # refuses paths and links that point outside, and devices
                name = member.name.removeprefix("./")
                seen.append(name)
                content = tar.extractfile(member) if name in members else None
                if content:
                    with content, (folder / members[name]).open("wb") as file:
                        shutil.copyfileobj(content, file, 1 << 20)
    except tarfile.FilterError as error:
        raise UserError(f"{archive} is not unpacked, because it has a path outside of its folder: {error}") from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UserError(f"{archive} is not a complete archive ({error}): delete it, and download it again") from error
    for name, file_name in members.items():
        if not (folder / file_name).is_file():
            raise UserError(f"{archive} holds no file {name}; {did_you_mean(name, seen)}")
