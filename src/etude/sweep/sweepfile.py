"""A W&B sweep file, read as the Hydra multirun it stands for: the same file runs with W&B's agents and without W&B.

A study stands for the sweep over all its arms.
"""

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from etude.config.studies import load_study, study_names
from etude.config.yamlfile import read_yaml
from etude.errors import UserError, did_you_mean
from etude.paths import found

logger = logging.getLogger(__name__)

_PLAIN = re.compile(r"[A-Za-z0-9_/.+-]([A-Za-z0-9_/.:+-]*[A-Za-z0-9_/.+-])?")  # needs no quotes in Hydra's grammar
_KEY = re.compile(r"(?:\+\+?|~)?([\w@./-]+)")
_ONLY_WANDB = ("early_terminate", "run_cap")


def sweep_overrides(name: str, extra: Sequence[str] = ()) -> list[str]:
    """The Hydra overrides, for a multirun, that the sweep called `name` and the user's `extra` ones make together.

    Args:
        name: a path, or the name of a file in a `sweeps` folder, with or without `.yaml`; or else of a study.
        extra: what was typed behind the file's name; it wins over the file where both speak of one key.

    Returns:
        such as ["experiment=table3/base,table3/A1", "seed=1", "scale=pocket"].

    Raises:
        UserError: there is no such file, it is not a sweep file, or it asks for what only W&B can do.
    """
    file = _find(name)
    if file is None:
        overrides = [f"experiment={','.join(f'{name}/{arm}' for arm in load_study(name).arms)}"]
    else:
        overrides = _written(file)
    typed = {_key(override) for override in extra}
    return [override for override in overrides if _key(override) not in typed] + list(extra)


def _written(file: Path) -> list[str]:
    """What a sweep file says, as overrides."""
    content = read_yaml(file)
    if not isinstance(content, dict) or not isinstance(content.get("parameters"), dict) or not content["parameters"]:
        raise UserError(f"{file}: a sweep file needs parameters, such as  parameters: {{seed: {{values: [1, 2, 3]}}}}")
    if content.get("method") != "grid":
        raise UserError(f"{file}: method is {content.get('method')!r}; without W&B's agents only grid can run")
    for key in _ONLY_WANDB:
        if key in content:
            logger.warning("%s: %s works with W&B's agents only; here every run is trained to its end", file, key)
    overrides = [_override(file, key, parameter) for key, parameter in content["parameters"].items()]
    return overrides + [part for part in content.get("command") or [] if "=" in str(part)]


def _find(name: str) -> Path | None:
    """The file, or None where `name` is a study."""
    named = Path(name)
    candidates = [named] + [
        folder / (named.name if named.suffix else f"{named.name}.yaml")
        for folder in found("sweeps")
        if named.parent in (Path(), Path("sweeps"))
    ]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    if name in study_names():
        return None
    known = {file.name for folder in found("sweeps") for file in folder.glob("*.yaml")}
    studies = {study for study in study_names() if f"{study}.yaml" not in known}
    raise UserError(f"{name} is neither a sweep file nor a study: {did_you_mean(named.name, known | studies)}")


def _override(file: Path, key: Any, parameter: Any) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise UserError(f"{file}: parameters: {key!r} is no config key")
    if not isinstance(parameter, dict) or ("values" in parameter) == ("value" in parameter):
        raise UserError(f"{file}: parameters.{key} needs values: [...] or value: ... (nested keys are written a.b.c)")
    values = parameter["values"] if "values" in parameter else [parameter["value"]]
    if not isinstance(values, list) or not values:
        raise UserError(f"{file}: parameters.{key}.values must be a list of at least one value")
    if any(isinstance(value, dict) for value in values):
        raise UserError(f"{file}: parameters.{key} holds a mapping; write each of its keys as {key}.name")
    return f"{key}={','.join(quoted(value) for value in values)}"


def quoted(value: Any) -> str:
    """`value` as Hydra's override grammar writes it, so that it is read back as one value and nothing else.

    Example:
        >>> [quoted(value) for value in ("table3/A1", 1e-9, None, True, "a, b", [1, 2])]
        ['table3/A1', '1e-09', 'null', 'true', "'a, b'", '[1,2]']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(quoted(item) for item in value)}]"
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    # Backslashes are themselves in Hydra's quotes, unless they stand before a quote.
    escaped = re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text)
    return f"'{escaped}'"


def _key(override: str) -> str:
    match = _KEY.match(override)
    return match[1] if match else override
