"""What of the words that were typed for a run tells it from others."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from etude.runs.material import IMMATERIAL
from etude.studies.study import value_at
from etude.terminal import format_value

if TYPE_CHECKING:
    from etude.runs.records import Run

# What says which run it is, or cannot change what it finds; a factor acts through the numbers that it makes.
_ACTING = {"data", "scale", *(key for key in IMMATERIAL if key.startswith("budget."))}
NOT_A_SETTING = (IMMATERIAL - _ACTING) | {"experiment", "seed", "hydra", "trainer"}


def distinguishing_overrides(overrides: Iterable[str]) -> list[str]:
    """The overrides that tell a run from others of its study, arm and seed."""
    return [override for override in overrides if not _is_beside(override.lstrip("+~").partition("=")[0])]


def _is_beside(key: str) -> bool:
    """Whether the key, or a section that it lies in, is no setting; of `trainer` some keys are."""
    around = set(accumulate(re.split(r"[./]", key), "{}.{}".format))
    return key == "trainer" or bool(around & (NOT_A_SETTING - {"trainer"}))


def typed_settings(overrides: Iterable[str]) -> dict[str, str]:
    """The same as key -> value, without where the data lies."""
    pairs = (override.lstrip("+~").partition("=") for override in distinguishing_overrides(overrides))
    return {key: value for key, _, value in pairs if not key.startswith("data.")}


def with_settings(runs: Sequence["Run"], changed: Collection[str], tuned: Collection[str]) -> list["Run"]:
    """Set `setting` of each run: what was chosen besides arm and seed, typed or not. Runs of one share a table.

    Left out is what a study tunes, and what was typed in vain: the value is the same where it was not typed.

    Args:
        runs: of one study.
        changed: the config groups and dotted keys that its arms change.
        tuned: the keys that it tunes.
    """
    found = []
    for run in runs:
        typed = {key: value for key, value in run.typed.items() if key not in tuned}
        found.append(replace(run, setting=typed | _free_choices(run.choices, changed)))
    return [
        replace(run, setting={k: v for k, v in run.setting.items() if not _is_needless(k, run, found, changed)})
        for run in found
    ]


def _is_needless(key: str, run: "Run", runs: Sequence["Run"], changed: Collection[str]) -> bool:
    """Whether those who did not type `key` have the value that this run typed.

    Those of its arm are asked, or where there are none and no arm touches it, all.
    """
    value = value_at(run.config, key)
    if key not in run.typed or key in run.choices or (value is None and run.typed[key] != "null"):
        return False
    others = [other for other in runs if key not in other.typed and _chosen(other) == _chosen(run)]
    own = [other for other in others if other.arm == run.arm]
    others = own if own or _is_touched(changed, key) else others
    return bool(others) and all(value_at(other.config, key) == value for other in others)


def _chosen(run: "Run") -> dict[str, str]:
    """The choices of groups in the setting."""
    return {key: value for key, value in run.setting.items() if key in run.choices}


def _is_touched(changed: Collection[str], name: str) -> bool:
    """Whether an arm changes a group or a key, or one around it."""
    return any(f"{name.replace('.', '/')}/".startswith(f"{one.replace('.', '/')}/") for one in changed)


def _free_choices(choices: Mapping[str, Any], changed: Collection[str]) -> dict[str, str]:
    """The choices in groups that no arm changes."""
    return {
        group: format_value(choice)
        for group, choice in choices.items()
        if group not in NOT_A_SETTING and not any(f"{group}/".startswith(f"{key}/") for key in changed)
    }
