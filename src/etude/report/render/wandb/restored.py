"""What W&B keeps of a run, in the form that the run has on disk."""

from collections.abc import Mapping
from typing import Any

from etude.terminal import told

_BESIDE = ("environment", "code", "overrides", "studies")  # what the logger puts beside the config
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # JSON has no numbers for them


def config_of(logged: Mapping[str, Any]) -> dict[str, Any]:
    """The frozen config of a run from its config at W&B, which holds more.

    The parameters of a sweep stand beside it. Where one of them has the name of a whole section, as `budget: smoke`
    has, the section's own keys were logged with dots: `budget.max_steps`.
    """
    config = {key: value for key, value in logged.items() if key not in _BESIDE and not {".", "/"} & set(key)}
    for section in _named_sections(logged):
        start = f"{section}."
        config[section] = {key.removeprefix(start): value for key, value in logged.items() if key.startswith(start)}
    return config


def overrides_of(logged: Mapping[str, Any]) -> list[str]:
    """What was typed, as far as W&B was told: all of it, or by a run that did not tell, the parameters of its sweep."""
    if "overrides" in logged:
        return [str(override) for override in logged["overrides"]]
    named = _named_sections(logged)
    return [
        f"{key}={told(value)}"
        for key, value in logged.items()
        if key in named or "/" in key or ("." in key and key.partition(".")[0] not in named)
    ]


def result_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a run from its summary, where `test/bleu` stands for a key within a key."""
    result: dict[str, Any] = {}
    for key, value in summary.items():
        number = float(value) if value in _NOT_FINITE else value
        part, slash, name = key.partition("/")
        if slash:
            result.setdefault(part, {})[name] = number
        else:
            result[part] = number
    return result


def _named_sections(logged: Mapping[str, Any]) -> set[str]:
    heads = {key.partition(".")[0] for key in logged if "." in key}
    return {head for head in heads if isinstance(logged.get(head), str)}
