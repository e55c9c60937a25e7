"""The runs of a study that belong into its tables, each with its setting."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from etude.runs.records import Run, read_rows
from etude.runs.typed import NOT_A_SETTING
from etude.studies.study import Study, value_at
from etude.terminal import format_value


def read_runs(study: Study, runs_dir: Path) -> tuple[list[Run], list[str]]:
    """Read every run of the study's arms, with its setting, and say in a sentence which were left out."""
    rows, notes = read_rows(runs_dir / study.name, study.arms)
    return runs_of(study, rows, notes)


def runs_of(study: Study, rows: Iterable[Run], notes: Sequence[str]) -> tuple[list[Run], list[str]]:
    """Leave out the rows that a table of the study could not hold, and find the settings of the others."""
    kept, notes = [], [*notes]
    for run in rows:
        lacks = [key for key in ("parameters", "steps") if run.finished and run.score(key) is None]
        if run.config.get("arm", run.arm) != run.arm:
            notes.append(f"Left out: {run.run_dir.path}, which is a run of the arm {run.config['arm']}.")
        elif lacks:
            notes.append(f"Left out: {run.run_dir.path}, which cannot be read (its result has no {lacks[0]}).")
        else:
            kept.append(run)
    return with_settings(kept, study.changed, study.tune), notes


def with_settings(runs: Sequence[Run], changed: Collection[str], tuned: Collection[str]) -> list[Run]:
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


def _is_needless(key: str, run: Run, runs: Sequence[Run], changed: Collection[str]) -> bool:
    """Whether those who did not type `key` have the value that this run typed.

    Those of its arm are asked, or where there are none and no arm touches it, all.
    """
    value = value_at(run.config, key)
    if key not in run.typed or key in run.choices or (value is None and run.typed[key] != "null"):
        return False
    others = [other for other in runs if key not in other.typed and _choices(other) == _choices(run)]
    own = [other for other in others if other.arm == run.arm]
    others = own if own or _is_touched(changed, key) else others
    return bool(others) and all(value_at(other.config, key) == value for other in others)


def _choices(run: Run) -> dict[str, str]:
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
