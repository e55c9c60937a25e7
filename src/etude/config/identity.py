"""A run is a function of its config: what identifies it, and the directory that follows from it."""

import hashlib
import json
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from etude.config.check import check
from etude.config.rules import check_rules
from etude.errors import UserError
from etude.files import write_text
from etude.rundir import RunDir

# What cannot change a result: names, places, devices, loggers, and factors that act only through the numbers they made.
_IMMATERIAL = ("study", "arm", "runs_dir", "cache_dir", "trainer", "logger", "scale", "choices", "data")


def freeze(config: DictConfig) -> RunDir:
    """Check a composed config, give it its directory, and write it there as it will be run.

    Args:
        config: as composed, Hydra's own node included.

    Raises:
        UserError: the config cannot run.
    """
    plain = sound(config)
    directory = run_dir(plain, fingerprint(plain))
    if not directory.finished:  # what is immaterial may have changed: another place of the data, another logger
        write_text(directory.overrides_file, "".join(f"{line}\n" for line in config.hydra.overrides.task))
        write_text(directory.config_file, OmegaConf.to_yaml(OmegaConf.create(plain)))
    return directory


def sound(config: DictConfig) -> dict[str, Any]:
    """The resolved config, after every check.

    Raises:
        UserError: the config cannot run.
    """
    try:
        plain = resolved(config)
    except (OmegaConfBaseException, UserError):
        check(config)  # key by key, which finds the one that cannot be worked out
        raise
    flat = OmegaConf.create(plain)  # checking is much faster where nothing is left to work out
    check(flat)
    check_rules(flat)
    return plain


def resolved(config: DictConfig) -> dict[str, Any]:
    """The config as plain data: interpolations worked out, group choices in `choices`, Hydra's own node left out."""
    own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    OmegaConf.resolve(own)
    plain: dict[str, Any] = OmegaConf.to_container(own)  # type: ignore[assignment]
    choices = config.hydra.runtime.choices
    return plain | {"choices": {k: v for k, v in sorted(choices.items()) if not k.startswith("hydra/")}}


def written(config: DictConfig) -> dict[str, Any]:
    """The config as it is written, its interpolations still standing; Hydra's own node left out."""
    own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    return OmegaConf.to_container(own)  # type: ignore[return-value]


def run_dir(config: dict[str, Any], text: str) -> RunDir:
    """Where the run of a resolved config lies, given the fingerprint of its text."""
    name = f"seed{config['seed']}-{run_id(config, text)}"
    return RunDir(Path(config["runs_dir"]).expanduser() / config["study"] / config["arm"] / name)


def fingerprint(config: dict[str, Any]) -> str:
    """Of the text that a config trains and tests on.

    Raises:
        UserError: it cannot be had.
    """
    text: str = instantiate(config["data"]).fingerprint()
    return text


def run_id(config: dict[str, Any], text: str) -> str:
    """Ten hex digits that change exactly when the result may: the config less what is immaterial, plus the text."""
    material = {key: value for key, value in config.items() if key not in _IMMATERIAL}
    material["budget"] = {key: value for key, value in config["budget"].items() if key not in ("steps", "rate")}
    material["text"] = text
    canonical = json.dumps(material, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:10]
