"""Multi30k, task 1 (Elliott et al. 2016): 29,000 image captions in English and their translations.

The files come from the public repository multi30k/dataset, or from a folder of the user's (`data.root`). Both are
checked against the sums in the config, so that the fingerprint is known before anything is downloaded; for files of a
test set without sums, the checksum of the file that was read is used (see `SourceFile`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from etude.data.corpus import SPLITS, Pair, SplitCorpus, digest, require_test_set
from etude.data.download import SourceFile
from etude.data.lines import parallel_lines
from etude.errors import UserError


class Multi30k(SplitCorpus):
    """Captions in two languages, as `conf/data/multi30k_en_de.yaml` explains; `sums` lists the files."""

    def __init__(
        self,
        *,
        source: str,
        target: str,
        root: str | None,
        url: str,
        download_dir: str,
        sums: dict[str, str | None],
        vocab_size: int,
        test: str,
    ) -> None:
        self.languages = (source, target)
        self.vocab_size = vocab_size
        self.root = root or None  # an empty environment variable names no folder
        self.folder = Path(self.root or download_dir).expanduser()
        self.url = url.rstrip("/")
        self.sums = dict(sums)
        self.test = test
        self._downloads = Path(download_dir).expanduser()

    def fingerprint_of(self, splits: Sequence[str]) -> str:
        """Hash the checksums of the files."""
        return digest([[file.identity() for file in self._files(split)] for split in splits])

    def fetch(self) -> None:
        """Download what is missing, unless the user gave a folder."""
        for split in SPLITS:
            for file in self._files(split):
                file.fetch()

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the captions and their translations, in the order of the files."""
        source, target = (file.verify() for file in self._files(split))
        return parallel_lines(source, target)

    def _files(self, split: str) -> list[SourceFile]:
        known = (name.partition(".")[0] for name in self.sums if name.startswith("test_"))
        require_test_set("test", self.test, dict.fromkeys(known))
        stem = {"train": "train", "valid": "val", "test": self.test}[split]
        return [self._file(f"{stem}.{language}.gz") for language in self.languages]

    def _file(self, name: str) -> SourceFile:
        if name not in self.sums:
            raise UserError(f"data.sums has no SHA-256 for {name}; add it (null: not known), or choose other languages")
        return SourceFile(
            url=f"{self.url}/{name}",
            path=self.folder / name,
            sum=self.sums[name],
            owned=self.root is not None,
            records=self._downloads,
        )
