"""What of the words that were typed for a run tells it from others."""

import re
from collections.abc import Iterable

# What says which run it is, or cannot change what it finds.
NOT_A_SETTING = {"experiment", "study", "arm", "seed", "hydra", "stale", "runs_dir", "cache_dir", "trainer", "logger"}


def distinguishing_overrides(overrides: Iterable[str]) -> list[str]:
    """The overrides that tell a run from others of its study, arm and seed."""
    return [override for override in overrides if re.split(r"[./=]", override.lstrip("+~"))[0] not in NOT_A_SETTING]
