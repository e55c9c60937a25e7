"""Multi30k, task 1 (Elliott et al. 2016): 29,000 image captions in English and their translations.

The files come from the public repository multi30k/dataset, or from a folder of the user's (`data.root`). Both are
checked against the sums in the config, so the fingerprint is known before anything is downloaded.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from etude.data.corpus import SPLITS, Corpus, Pair, digest
from etude.data.download import download, verify_checksum
from etude.data.lines import parallel_lines
from etude.errors import UserError

FILES = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


class Multi30k(Corpus):
    """Captions in two of the corpus's languages, as `conf/data/multi30k_en_de.yaml` explains; `sums` pins six files."""

    def __init__(
        self,
        *,
        source: str,
        target: str,
        root: str | None,
        url: str,
        download_dir: str,
        sums: Mapping[str, str],
        vocab_size: int,
    ) -> None:
        self.languages = (source, target)
        self.vocab_size = vocab_size
        self.root = root or None  # an empty environment variable names no folder
        self.folder = Path(self.root or download_dir).expanduser()
        self.url = url.rstrip("/")
        self.sums = dict(sums)

    def fingerprint(self) -> str:
        """A hash of the pinned sums."""
        return digest([[self._sum(name) for name in self._names(split)] for split in SPLITS])

    def fetch(self) -> None:
        """Download what is missing, unless the user gave a folder."""
        if self.root is None:
            for split in SPLITS:
                for name in self._names(split):
                    download(f"{self.url}/{name}", self.folder / name, self._sum(name))

    def pairs(self, split: str) -> Iterator[Pair]:
        """The captions and their translations, in the order of the files."""
        source, target = (self._verified(name) for name in self._names(split))
        return parallel_lines(source, target)

    def _names(self, split: str) -> list[str]:
        return [f"{FILES[split]}.{language}.gz" for language in self.languages]

    def _sum(self, name: str) -> str:
        if name not in self.sums:
            raise UserError(f"data.sums has no SHA-256 for {name}; add it, or choose other languages")
        return self.sums[name]

    def _verified(self, name: str) -> Path:
        path = self.folder / name
        if not path.is_file():
            raise UserError(
                f"there is no {path}; "
                + ("run `etude prepare` to download it" if self.root is None else "data.root must hold that file")
            )
        verify_checksum(path, self._sum(name), name=str(path))
        return path
