"""What of the words that were typed for a run tells it from others."""

import re
from collections.abc import Iterable
from itertools import accumulate

from etude.runs.material import IMMATERIAL
from etude.studies.renames import override_of_today

# What says which run it is, or cannot change what it finds; a factor acts through the numbers that it makes.
_ACTING = {"data", "scale", *(key for key in IMMATERIAL if key.startswith("budget."))}
NOT_A_SETTING = (IMMATERIAL - _ACTING) | {"experiment", "seed", "hydra", "trainer"}


def distinguishing_overrides(overrides: Iterable[str]) -> list[str]:
    """The overrides that tell a run from others of its study, arm and seed."""
    today = map(override_of_today, overrides)
    return [override for override in today if not _is_beside(override.lstrip("+~").partition("=")[0])]


def _is_beside(key: str) -> bool:
    """Whether the key, or a section that it lies in, is no setting; of `trainer` some keys are."""
    around = set(accumulate(re.split(r"[./]", key), "{}.{}".format))
    return key == "trainer" or bool(around & (NOT_A_SETTING - {"trainer"}))


def typed_settings(overrides: Iterable[str]) -> dict[str, str]:
    """The same as key -> value, without where the data lies."""
    pairs = (override.lstrip("+~").partition("=") for override in distinguishing_overrides(overrides))
    return {key: value for key, _, value in pairs if not key.startswith("data.")}
