"""Hydra's compositions, kept for all workers: the suite asks for thousands, 0.13 s each, and many are the same."""

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from etude.paths import CONFIG_DIR, folders_of


def remembering(compose: Callable[..., DictConfig], folder: Path) -> Callable[..., DictConfig]:
    """`hydra.compose`, whose answers are kept in a folder; each caller gets a copy of its own."""

    def remembered(config_name: str, overrides: Sequence[str], **options: Any) -> DictConfig:
        asked = [config_name, list(overrides), sorted(options.items()), os.environ.get(CONFIG_DIR), *_read()]
        file = folder / hashlib.sha256(repr(asked).encode()).hexdigest()
        if not file.exists():
            found = pickle.dumps(compose(config_name, overrides, **options))  # mistakes are not kept
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(found)
            part.replace(file)
        config: DictConfig = pickle.loads(file.read_bytes())
        return config

    return remembered


def _read() -> Iterator[object]:
    """What a composition reads: where one stands, and every file that it may find, with its time and size."""
    yield Path.cwd()
    sources = GlobalHydra.instance().config_loader().get_sources()
    yield [str(source.full_path()) for source in sources]
    folders = [folder for name in ("conf", "experiments", "sweeps") for folder in folders_of(name)]
    folders += [Path(source.path) for source in sources if source.scheme() == "file"]
    for folder in dict.fromkeys(folders):
        for place, _, files in os.walk(folder):
            for name in files:
                if name.endswith((".yaml", ".py")):
                    found = Path(place, name).stat()
                    yield place, name, found.st_mtime_ns, found.st_size
