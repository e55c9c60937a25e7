"""Hydra's compositions, kept for all workers: the suite asks for thousands, 0.1 s each, of few choices of files.

Hydra sets values (`seed=2`, `model.heads=4`) in what it composed of the chosen files; so does this, in a copy.
"""

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import hydra.version
import omegaconf.base
from hydra._internal import defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigSource
from omegaconf import DictConfig, OmegaConf

from etude.paths import CONFIG_DIR, folders_of, shipped

SHIPPED = {shipped(name) for name in ("conf", "experiments", "sweeps")}  # which no test changes


def remembering(compose: Callable[..., DictConfig], folder: Path) -> Callable[..., DictConfig]:
    """`hydra.compose`, whose compositions of files are kept in a folder; each caller gets a copy of its own."""

    def of_files(config_name: str, overrides: Sequence[str], **options: Any) -> DictConfig:
        asked = [config_name, list(overrides), sorted(options.items()), os.environ.get(CONFIG_DIR), *_read()]
        file = folder / hashlib.sha256(repr(asked).encode()).hexdigest()
        if not file.exists():
            found = pickle.dumps(compose(config_name, overrides, **options))  # mistakes are not kept
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(found)
            part.replace(file)
        config: DictConfig = pickle.loads(file.read_bytes())
        return config

    def remembered(config_name: str, overrides: Sequence[str], **options: Any) -> DictConfig:
        try:
            parsed = OverridesParser.create().parse_overrides(list(overrides))
            values = [override for override in parsed if _sets_a_value(override)]
            config = of_files(config_name, [str(one.input_line) for one in parsed if one not in values], **options)
            ConfigLoaderImpl._apply_overrides_to_config(values, config)
        except HydraException:
            return of_files(config_name, overrides, **options)  # where the mistake is told in full
        if values and "hydra" in config:
            _tell_hydra(config.hydra, [one for one in parsed if not one.is_hydra_override()])
        return config

    return remembered


def _sets_a_value(override: Override) -> bool:
    """Tell whether an override is `key=value` for a key of étude's that is no group."""
    plain = override.type == OverrideType.CHANGE and override.package is None and not override.is_sweep_override()
    groups = GlobalHydra.instance().config_loader().repository  # type: ignore[attr-defined]
    return plain and not override.is_hydra_override() and not groups.group_exists(override.key_or_group)


def _tell_hydra(node: DictConfig, overrides: list[Override]) -> None:
    """Write what was typed where Hydra does."""
    node.overrides.task = [str(one.input_line) for one in overrides]
    dirname = OmegaConf.to_container(node.job.config.override_dirname)
    node.job.override_dirname = get_overrides_dirname(overrides, **dirname)  # type: ignore[arg-type]


def parse_nothing_twice(patch: Callable[[Any, str, Any], None]) -> None:
    """Hydra parses each of its forty files for each composition, and lists all choices again behind each file.

    OmegaConf parses an interpolation, such as `${model.d_model}`, whenever it resolves it, and Hydra its own version's
    number whenever it asks for it.
    """
    Plugins.instance()  # which fills the registry
    source_of_files = SourcesRegistry.instance().resolve("file")
    load, list_choices = source_of_files.load_config, defaults_list._create_interpolation_map
    parsed: dict[tuple[Any, ...], bytes] = {}

    def load_once(source: ConfigSource, config_path: str) -> Any:
        file = Path(source.path, f"{config_path.removesuffix('.yaml')}.yaml")
        if not file.is_file():
            return load(source, config_path)
        found = file.stat()
        key = source.provider, file, found.st_mtime_ns, found.st_size
        if key not in parsed:
            parsed[key] = pickle.dumps(load(source, config_path))  # which is a faster way to a copy
        return pickle.loads(parsed[key])

    def list_if_read(overrides: Any, defaults: list[Any], self_added: bool) -> Any:
        """For choices that are interpolations alone, such as `${scale}`."""
        read = any(not default.is_self() and default.is_interpolation() for default in defaults)
        return list_choices(overrides, defaults, self_added) if read else None

    patch(omegaconf.base, "parse", cache(omegaconf.base.parse))
    patch(hydra.version, "_get_version", cache(hydra.version._get_version))
    patch(source_of_files, "load_config", load_once)
    patch(defaults_list, "_create_interpolation_map", list_if_read)


def _read() -> Iterator[object]:
    """What a composition reads: where one stands, and every file of a user's that it finds, with its time and size."""
    yield Path.cwd()
    sources = GlobalHydra.instance().config_loader().get_sources()
    yield [str(source.full_path()) for source in sources]
    folders = [folder for name in ("conf", "experiments", "sweeps") for folder in folders_of(name)]
    folders += [Path(source.path) for source in sources if source.scheme() == "file"]
    for folder in dict.fromkeys(folder for folder in folders if folder not in SHIPPED):
        for place, _, files in os.walk(folder):
            for name in files:
                if name.endswith((".yaml", ".py")):
                    found = Path(place, name).stat()
                    yield place, name, found.st_mtime_ns, found.st_size
