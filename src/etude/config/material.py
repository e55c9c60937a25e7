"""What of a config may change the result of a run."""

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
