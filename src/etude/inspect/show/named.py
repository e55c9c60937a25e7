"""What a person may name: a run directory, an arm of a study, overrides; and the config that each stands for."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from etude.config.compose import compose
from etude.config.resolve import as_written, resolve, resolve_valid
from etude.errors import UserError, did_you_mean
from etude.runs.run_dir import RunDir
from etude.studies.study import arm_names, load_study, study_names
from etude.yaml_file import read_yaml

Config = dict[str, Any]


@dataclass(frozen=True)
class NamedConfig:
    """A config and how it came to be."""

    config: Config  # every value, with the group choices in `choices`
    written: Config  # the same with its interpolations still standing, where they are known
    folders: Sequence[Traversable] = ()  # where its files were looked for, the first first; of a run nobody knows


def find_config(words: Sequence[str]) -> NamedConfig:
    """The config that the words stand for, checked unless it is a run's, which may be older than today's rules.

    Args:
        words: a run directory (`runs/...` or `run=runs/...`), or overrides, among which `table3/A1` is short for
            `experiment=table3/A1`; none for the defaults.

    Raises:
        UserError: a word is none of these, or the config cannot run.
    """
    for word in words:
        run = RunDir.at(word.removeprefix("run="))
        if word.startswith("run=") or run.config_file.is_file():
            if others := [other for other in words if other is not word]:
                raise UserError(f"{word} is a run, whose config is fixed: leave out {' '.join(others)}")
            return _of_run(run)
    config = compose([_override(word) for word in words])
    return NamedConfig(resolve_valid(config), as_written(config), _folders(config))


def _folders(config: DictConfig) -> list[Traversable]:
    """Of Hydra's search path, what lies on disk."""
    sources = [(source.schema, source.path) for source in config.hydra.runtime.config_sources]
    return [Path(path) if schema == "file" else files(path) for schema, path in sources if schema in ("file", "pkg")]


def _override(word: str) -> str:
    if word in arm_names():
        return f"experiment={word}"
    if "=" in word or word.startswith("~"):
        return word
    if word in study_names():
        raise UserError(f"{word} is a study: name one of its arms, such as {word}/{load_study(word).baseline}")
    if Path(word).exists() or word.count("/") > 1:
        raise RunDir(Path(word)).not_a_run
    raise UserError(
        f"{word!r} is neither the directory of a run, nor an arm of a study, nor key=value; "
        f"{did_you_mean(word, arm_names())}"
    )


def _of_run(run: RunDir) -> NamedConfig:
    """The frozen config of a run; what was written is known where composing its overrides again gives the same."""
    if not run.config_file.is_file():
        raise run.not_a_run
    config = read_yaml(run.config_file)
    if not isinstance(config, dict) or not {"model", "data", "choices"} <= config.keys():
        raise UserError(
            f"{run.config_file} is not the config of a run: the file is torn: delete the directory and train again"
        )
    try:
        again = compose(run.overrides_file.read_text(encoding="utf-8").splitlines())
        return NamedConfig(config, _where_same(config, resolve(again), as_written(again)))
    except (OSError, UserError):
        return NamedConfig(config, {})


def _where_same(config: Config, again: Config, written: Config) -> Config:
    """Of what is written, the part that still means what the config says."""
    kept: Config = {}
    for key in config.keys() & written.keys():
        if isinstance(config[key], dict) and isinstance(written[key], dict):
            kept[key] = _where_same(config[key], again[key], written[key])
        elif config[key] == again[key]:
            kept[key] = written[key]
    return kept
