"""Select the part of a config that may change the result of a run, and compute the run's identity from it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from etude.store.tested_weights import tested_by_name, tested_weights

_OWN = "study arm stale runs_dir cache_dir logger choices data scale debug objective metrics"
_FACTORS = "steps lr_factor pairs test_pairs"  # which act only through the numbers that they make
_TRAINER = """accelerator devices strategy num_nodes micro_batches matmul compile deterministic stop_when_diverged
    check_parts benchmark detect_anomaly
    inference_mode profiler log_every_n_steps enable_autolog_hparams model_registry"""
_SECTIONS = {"budget": _FACTORS, "trainer": _TRAINER, "decoding": "batch_tokens", "init_from": "run"}
IMMATERIAL = frozenset(_OWN.split()).union(f"{name}.{key}" for name, keys in _SECTIONS.items() for key in keys.split())
"""The keys that cannot change a result: names, paths, devices, loggers, debugging aids, how much is computed at once.
Also `data`, which counts by the text that it yields. Any other key may change the result, the user's own included."""

ONLOOKERS = frozenset(
    [
        "etude.training.gradient_norms.GradientNorms",
        *(f"lightning.pytorch.callbacks.{name}" for name in ("DeviceStatsMonitor", "LearningRateMonitor")),
    ]
)
"""Callbacks that observe training without changing it."""

TRANSLATION = {"_target_": "etude.tasks.translation.Translation"}
"""The only task in early versions. It is left out of the identity, so that the runs of those versions keep theirs."""

BACKENDS = tuple(
    f"etude.model.{name}" for name in ("backend.Eager", "fused.Fused", "backend.Sdpa", "by_device.ByDevice")
)
"""Backends that compute the same attention. Like devices, they may differ in rounding and in the dropout they draw."""

_SHARING = ("devices", "num_nodes", "micro_batches")  # by which a batch is shared out

_SCORE_ONLY = ("decoding", "budget.bleu_sentences", "weights")


def run_identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resolved config without immaterial keys; the seed stays. A switched-off option counts as absent."""
    found = {"budget": {}, "trainer": {}} | {key: value for key, value in config.items() if key not in IMMATERIAL}
    for name in _SECTIONS:
        if values := found.get(name):  # `decoding` is null for a task that does not translate
            found[name] = {key: value for key, value in values.items() if f"{name}.{key}" not in IMMATERIAL}
    callbacks = (config.get("callbacks") or {}).items()
    found["callbacks"] = {name: part for name, part in callbacks if not _looks_on(part)}
    if not found["callbacks"]:  # without callbacks, validation has no influence on training
        found["budget"] = {key: value for key, value in found["budget"].items() if not key.startswith("val_")}
    elif names := found["budget"].get("val_metrics"):  # which callbacks may monitor
        found["val_metrics"] = {name: config["metrics"][name] for name in names} | {"": found.get("decoding")}
    found["trainer"] = {
        key: value for key, value in found["trainer"].items() if value is not None and value is not False
    }
    if _has_experts(config.get("model")):
        shares = {key: config.get("trainer", {}).get(key) or 1 for key in _SHARING}
        found["trainer"] |= {key: number for key, number in shares.items() if number != 1}
    backend = (config.get("model") or {}).get("backend") or {}
    if backend.get("_target_") in BACKENDS:
        found["model"] = config["model"] | {"backend": backend | {"_target_": BACKENDS[0]}}
    if "tokenizer" in config:
        own = not str(config["tokenizer"].get("_target_")).startswith("etude.")  # for which null may be no default
        found["tokenizer"] = {key: value for key, value in config["tokenizer"].items() if value is not None or own}
        if "sum" in found["tokenizer"] and not own:  # of the content of a file, wherever that lies
            found["tokenizer"].pop("file", None)
    found["optimizer"] = {k: v for k, v in (config.get("optimizer") or {}).items() if k != "groups" or v}
    if found.get("task") == TRANSLATION:
        del found["task"]
    if not (config.get("averaging") or {}).get("checkpoints"):
        found["averaging"] = {"checkpoints": 0}
    found.pop("weights", None)
    if (tested := tested_weights(config)) != tested_by_name(config):
        found["weights"] = tested
    return {key: value for key, value in found.items() if value or key not in ("callbacks", "trainer", "optimizer")}


def _looks_on(callback: Any) -> bool:
    return isinstance(callback, Mapping) and callback.get("_target_") in ONLOOKERS


def _has_experts(node: Any) -> bool:
    """Return whether a model has a mixture of experts: what an expert takes depends on what is with it."""
    if not isinstance(node, Mapping):
        return False
    return str(node.get("_target_")).endswith(".MixtureOfExperts") or any(map(_has_experts, node.values()))


def identify(config: Mapping[str, Any], text: str) -> str:
    """Return the identity of the run of a resolved config: ten hex digits that change exactly when the result may.

    Args:
        config: the resolved config.
        text: the fingerprint of the training and test text.
    """
    return digest(run_identity(config) | {"text": text})


def identify_training(config: Mapping[str, Any], text: str) -> str:
    """Return the identity of the training of a resolved config: ten hex digits. Runs that share them share weights.

    Keys that only change how the model is scored, such as the beam size or the test text, do not change it.

    Args:
        config: the resolved config.
        text: the fingerprint of the training text.
    """
    return digest(training_identity(config, text))


def training_identity(config: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return what decides the weights of a training; arguments as in `identify_training`."""
    sections = {key: value for key, value in run_identity(config).items() if key not in _SCORE_ONLY}
    sections["budget"] = {key: v for key, v in sections.get("budget", {}).items() if f"budget.{key}" not in _SCORE_ONLY}
    profiler = (config.get("trainer") or {}).get("profiler")  # it reports on a training, so there must be one
    return sections | {"text": text} | ({"profiler": profiler} if profiler else {})


def find_copies(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Find resolved configs that would give the same result if their seeds were the same.

    Returns:
        The name of the first of them -> the names of the others.
    """
    same: dict[str, list[str]] = {}
    for name, config in configs.items():
        same.setdefault(identify({**config, "seed": 0}, canonical(config.get("data"))), []).append(name)
    return {first: others for first, *others in same.values() if others}


def digest(value: Any) -> str:
    """Return ten hex digits that identify a value: equal values have equal ones, whatever the order of keys."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:10]


def canonical(value: Any) -> str:
    """Write a value as JSON, so that equal values give equal text: 1.0 equals 1 but not true; keys are sorted."""
    return json.dumps(_as_numbers(value), sort_keys=True, separators=(",", ":"), default=repr)


def _as_numbers(value: Any) -> Any:
    """Convert whole floats such as 1.0 to int, also within dictionaries and lists."""
    if isinstance(value, dict):
        return {key: _as_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
