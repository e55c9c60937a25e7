"""Hydra's compositions, kept for all workers: the suite asks for thousands, 0.13 s each, and many are the same.

A new one takes half of that, as no file is parsed twice.
"""

import copy
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra._internal import defaults_list
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigSource
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


def parse_no_file_twice(patch: Callable[[Any, str, Any], None]) -> None:
    """Hydra parses each of its forty files for each composition, and lists all choices again behind each file."""
    Plugins.instance()  # which fills the registry
    source_of_files = SourcesRegistry.instance().resolve("file")
    load, list_choices = source_of_files.load_config, defaults_list._create_interpolation_map
    parsed: dict[tuple[Any, ...], Any] = {}

    def load_once(source: ConfigSource, config_path: str) -> Any:
        file = Path(source.path, f"{config_path.removesuffix('.yaml')}.yaml")
        if not file.is_file():
            return load(source, config_path)
        found = file.stat()
        key = source.provider, file, found.st_mtime_ns, found.st_size
        if key not in parsed:
            parsed[key] = load(source, config_path)
        return copy.deepcopy(parsed[key])

    def list_if_read(overrides: Any, defaults: list[Any], self_added: bool) -> Any:
        """For choices that are interpolations alone, such as `${scale}`."""
        read = any(not default.is_self() and default.is_interpolation() for default in defaults)
        return list_choices(overrides, defaults, self_added) if read else None

    patch(source_of_files, "load_config", load_once)
    patch(defaults_list, "_create_interpolation_map", list_if_read)


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
