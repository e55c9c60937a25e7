"""Find out whether a finished run diverged. A divergence is a result: the same config would diverge again."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

EXIT_STATUS = 3
"""The exit status of a command whose only run diverged, so that it has a result but no scores."""


def divergence(result: Mapping[str, Any]) -> str | None:
    """Return how a run diverged, such as "the loss is nan at step 40"; None if all its scores are finite.

    Args:
        result: the content of `result.json`. A run whose training was stopped for it has the reason under `diverged`;
            for any other run the test scores decide.
    """
    if "diverged" in result:
        return str(result["diverged"])
    test = result.get("test") or {}
    for name, score in test.items():
        no_perplexity = name == "perplexity" and score == 0  # log(0) is not finite
        if isinstance(score, int | float) and (no_perplexity or not isfinite(score)):
            return f"the test {name} is {score}"
    return None
