"""Whether a finished run diverged. A divergence is a result: the same config would come to it again."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

EXIT_STATUS = 3
"""Of a command whose one run diverged: it has a result, but no scores."""


def divergence(result: Mapping[str, Any]) -> str | None:
    """How a run diverged, such as "the loss is nan at step 40", or None where what it scored are numbers.

    Args:
        result: what `result.json` holds. A run that was stopped says why; of any other its scores do.
    """
    if "diverged" in result:
        return str(result["diverged"])
    test = result.get("test") or {}
    for name, score in test.items():
        no_perplexity = name == "perplexity" and score == 0  # which has no logarithm
        if isinstance(score, int | float) and (no_perplexity or not isfinite(score)):
            return f"the test {name} is {score}"
    return None
