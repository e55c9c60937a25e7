"""The overrides of a run that distinguish it from other runs."""

import re
from collections.abc import Iterable
from itertools import accumulate

from etude.store.identity import IMMATERIAL
from etude.study.arms import override_key, split_override

# Keys that name the run or cannot change its result are no setting. The keys in ACTING are immaterial in a resolved
# config, which holds the numbers derived from them, but as an override they do change the result.
ACTING = {"data", "scale", "tokenizer.file", *(key for key in IMMATERIAL if key.startswith("budget."))}
NOT_A_SETTING = (IMMATERIAL - ACTING) | {"experiment", "seed", "hydra", "trainer"}


def distinguishing_overrides(overrides: Iterable[str]) -> list[str]:
    """Return the overrides that distinguish a run from others of its study, arm and seed."""
    return [override for override in overrides if not _is_no_setting(override_key(override))]


def _is_no_setting(key: str) -> bool:
    """Return whether the key, or a section around it, is no setting; some keys within `trainer` are settings."""
    around = set(accumulate(re.split(r"[./]", key), "{}.{}".format))
    return key == "trainer" or bool(around & (NOT_A_SETTING - {"trainer"}))


def typed_settings(overrides: Iterable[str]) -> dict[str, str]:
    """Return the distinguishing overrides as key -> value, without keys of the section `data`."""
    pairs = map(split_override, distinguishing_overrides(overrides))
    return {key: value for key, value in pairs if not key.startswith("data.")}
