"""Find the config that the command line names: of a run directory, of an arm of a study, or from overrides."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from etude.config.compose import compose
from etude.config.resolve import as_written, resolve_valid
from etude.data.vocabularies import open_tokenizer
from etude.errors import UserError, did_you_mean
from etude.files import read_json
from etude.paths import is_there
from etude.store.find_run import HASH, find_run
from etude.store.run_dir import RunDir
from etude.study.arm_names import arm_names, is_arm
from etude.study.arms import unquote
from etude.study.study import load_study, study_names

Config = dict[str, Any]


@dataclass(frozen=True)
class NamedConfig:
    """A config and where it comes from."""

    config: Config  # every value resolved, with the group choices in `choices`
    written: Config  # the same with interpolations not resolved, as far as they are known
    folders: Sequence[Traversable] = ()  # Hydra's search path, in order; empty for a run, where it is not known
    text: str = ""  # the fingerprint of the text of a run
    vocabulary: int | None = None  # V, the subwords that a run has learned; None for any other config

    @property
    def of_model(self) -> Config:
        """The config of the model as it is built: `tokenizer.vocab_size` is often no more than the most subwords."""
        if self.vocabulary is None:
            return self.config
        learned = {"vocab_size": self.vocabulary, "hard_vocab_limit": True}
        return self.config | {"tokenizer": self.config["tokenizer"] | learned}


def find_config(words: Sequence[str]) -> NamedConfig:
    """Find the config that `words` name, and validate it unless it is a run's, which may predate today's rules.

    Args:
        words: a run, as `find_run` takes it, with `run=` before it or without; or overrides, where `table3/A1` is
            short for `experiment=table3/A1`; empty for the defaults.

    Raises:
        UserError: a word is none of these, or the config is not valid.
    """
    for word in words:
        if _names_run(word):
            if others := [other for other in words if other is not word]:
                raise UserError(f"{word} is a run, whose config is fixed: leave out {' '.join(others)}")
            return _load_run_config(find_run(unquote(word.removeprefix("run="))))
    if len(arms := [word for word in words if is_arm(word)]) > 1:
        raise UserError(f"{' and '.join(arms)} are {len(arms)} arms: show one, or all in one model: {'+'.join(arms)}")
    config = compose([_override(word) for word in words])
    return NamedConfig(resolve_valid(config), as_written(config), _folders(config))


def _folders(config: DictConfig) -> list[Traversable]:
    """List the folders and packages of Hydra's search path."""
    sources = [(source.schema, source.path) for source in config.hydra.runtime.config_sources]
    return [Path(path) if schema == "file" else files(path) for schema, path in sources if schema in ("file", "pkg")]


def _names_run(word: str) -> bool:
    """Return whether a word names a run: its directory, or what can only be a hash or study/arm/seed."""
    name = unquote(word)
    if word.startswith(("run=", "~/")) or is_there(RunDir.at(name).config_file):
        return True
    if not name or "=" in name or name.startswith("~") or is_arm(name) or name in study_names():
        return False
    return is_there(Path(name)) or name.count("/") > 1 or HASH.fullmatch(name) is not None


def _override(word: str) -> str:
    if is_arm(word):
        return f"experiment={word}"
    if "=" in word or word.startswith("~"):
        return word
    if word in study_names():
        raise UserError(f"{word} is a study: name one of its arms, such as {word}/{load_study(word).baseline}")
    if (study := word.partition("/")[0]) in study_names():
        load_study(study)  # says what is wrong with it, if anything is
    raise UserError(
        f"{word!r} is neither a run, nor an arm of a study, nor key=value; {did_you_mean(word, arm_names())}"
    )


def _load_run_config(run: RunDir) -> NamedConfig:
    return NamedConfig(run.config(), run.written(), text=run.text(), vocabulary=_count_learned(run))


def _count_learned(run: RunDir) -> int | None:
    """Return the number of subwords that a run has learned; None if it has not come to that."""
    recorded: int | None = (read_json(run.result_file) or {}).get("vocabulary")
    if recorded is None and run.tokenizer_file.is_file():
        return len(open_tokenizer(run.tokenizer_file))
    return recorded
