"""What of a config may change the result of a run, and so identifies it; and when two of its values are one."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_OWN = "study arm stale runs_dir cache_dir logger choices data scale debug objective metrics"
_FACTORS = "steps lr_factor pairs test_pairs"  # which act only through the numbers that they make
_TRAINER = """accelerator devices strategy num_nodes micro_batches matmul compile deterministic stop_when_diverged
    benchmark detect_anomaly
    inference_mode profiler log_every_n_steps enable_autolog_hparams model_registry"""
_SECTIONS = {"budget": _FACTORS, "trainer": _TRAINER, "decoding": "batch_tokens"}
IMMATERIAL = frozenset(_OWN.split()).union(f"{name}.{key}" for name, keys in _SECTIONS.items() for key in keys.split())
"""What cannot: names, places, devices, loggers, what helps debugging, how much is computed at once; and the data, which
counts by the text that it gives. All else may, whoever brought it."""

ONLOOKERS = frozenset(
    [
        "etude.training.gradient_norms.GradientNorms",
        *(f"lightning.pytorch.callbacks.{name}" for name in ("DeviceStatsMonitor", "LearningRateMonitor")),
    ]
)
"""Callbacks that only look."""

TRANSLATION = {"_target_": "etude.tasks.translation.Translation"}
"""The task of every run until there was another, which therefore identifies none."""

BACKENDS = tuple(
    f"etude.model.{name}" for name in ("backend.Eager", "fused.Fused", "backend.Sdpa", "by_device.ByDevice")
)
"""Ways to compute the same attention: as with devices, its rounding is theirs, and which dropout it draws."""

_SCORE_ONLY = ("decoding", "budget.bleu_sentences")


def material(config: Mapping[str, Any]) -> dict[str, Any]:
    """The resolved config less what is immaterial; its seed is left in. What is off counts as if it were not there."""
    found = {"budget": {}, "trainer": {}} | {key: value for key, value in config.items() if key not in IMMATERIAL}
    for name in _SECTIONS:
        if values := found.get(name):  # there is no search where nothing is translated
            found[name] = {key: value for key, value in values.items() if f"{name}.{key}" not in IMMATERIAL}
    callbacks = (config.get("callbacks") or {}).items()
    found["callbacks"] = {name: part for name, part in callbacks if part.get("_target_") not in ONLOOKERS}
    if not found["callbacks"]:  # nobody acts on what a validation finds
        found["budget"].pop("val_every", None)
    found["trainer"] = {
        key: value for key, value in found["trainer"].items() if value is not None and value is not False
    }
    backend = (config.get("model") or {}).get("backend") or {}
    if backend.get("_target_") in BACKENDS:
        found["model"] = config["model"] | {"backend": backend | {"_target_": BACKENDS[0]}}
    if "tokenizer" in config:
        found["tokenizer"] = {key: value for key, value in config["tokenizer"].items() if value is not None}
    found["optimizer"] = {k: v for k, v in (config.get("optimizer") or {}).items() if k != "groups" or v}
    if found.get("task") == TRANSLATION:
        del found["task"]
    if not (config.get("averaging") or {}).get("checkpoints"):
        found["averaging"] = {"checkpoints": 0}
    return {key: value for key, value in found.items() if value or key not in ("callbacks", "trainer", "optimizer")}


def identify(config: Mapping[str, Any], text: str) -> str:
    """Which run a resolved config is: ten hex digits, which change exactly when the result may.

    Args:
        config: resolved.
        text: the fingerprint of what it trains and tests on.
    """
    return _digest(material(config) | {"text": text})


def identify_training(config: Mapping[str, Any], text: str) -> str:
    """Which training it is: ten hex digits that stay the same where only a score is worked out otherwise.

    So it is with another beam, or another test text: runs that share them share their weights.

    Args:
        config: resolved.
        text: the fingerprint of what it trains on.
    """
    sections = {key: value for key, value in material(config).items() if key not in _SCORE_ONLY}
    sections["budget"] = {key: v for key, v in sections.get("budget", {}).items() if f"budget.{key}" not in _SCORE_ONLY}
    return _digest(sections | {"text": text})


def is_same_but_for_seed(config: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two resolved configs come to the same result wherever their seeds are the same."""
    one, two = (identify({**each, "seed": 0}, canonical(each.get("data"))) for each in (config, other))
    return one == two


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:10]


def canonical(value: Any) -> str:
    """One text for all that is the same value: 1.0 is the number 1, which true is not, and keys have no order."""
    return json.dumps(_as_numbers(value), sort_keys=True, separators=(",", ":"), default=repr)


def _as_numbers(value: Any) -> Any:
    """The same with 1.0 written as 1."""
    if isinstance(value, dict):
        return {key: _as_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
