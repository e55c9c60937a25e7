"""What of a config may change the result of a run, and when two of its values are one."""

import json
from collections.abc import Mapping
from typing import Any

# What cannot: names, places, devices, loggers, factors that act only through the numbers they made; and the data, which
# counts by the text that it gives.
_IMMATERIAL = ("study", "arm", "stale", "runs_dir", "cache_dir", "trainer", "logger", "scale", "choices", "data")
_FACTORS = ("steps", "rate", "pairs")


def material(config: Mapping[str, Any]) -> dict[str, Any]:
    """The resolved config less what is immaterial; its seed is left in."""
    found = {key: value for key, value in config.items() if key not in _IMMATERIAL}
    found["budget"] = {key: value for key, value in (config.get("budget") or {}).items() if key not in _FACTORS}
    if not (config.get("averaging") or {}).get("checkpoints"):
        found["averaging"] = {"checkpoints": 0}
    return found


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
