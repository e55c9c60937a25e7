"""Read the runs that belong in the tables of a study, each with its setting."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from etude.runs.records import Run, read_rows
from etude.runs.typed import NOT_A_SETTING
from etude.studies.study import Study, value_at
from etude.terminal import format_value

Choices = frozenset[tuple[str, str]]


def read_runs(study: Study, runs_dir: Path) -> tuple[list[Run], list[str]]:
    """Read every run of the study's arms, with its setting; also return a sentence for each run left out."""
    rows, notes = read_rows(runs_dir / study.name, study.arms)
    return runs_of(study, rows, notes)


def runs_of(study: Study, rows: Iterable[Run], notes: Sequence[str]) -> tuple[list[Run], list[str]]:
    """Drop the rows that do not fit in a table of the study, and find the settings of the others.

    Args:
        study: the study.
        rows: its runs.
        notes: sentences on runs left out so far; the returned list begins with them.
    """
    kept, notes = [], [*notes]
    for run in rows:
        needed = ("parameters", "steps", *["test.sentences"] * (not run.divergence)) if run.finished else ()
        lacks = [key for key in needed if run.score(key) is None]
        if run.config.get("arm", run.arm) != run.arm:
            notes.append(f"Left out: {run.run_dir.path}, which is a run of the arm {run.config['arm']}.")
        elif lacks:
            notes.append(f"Left out: {run.run_dir.path}, which cannot be read (its result has no {lacks[0]}).")
        else:
            kept.append(run)
    return with_settings(kept, study.changed, study.tune), notes


def with_settings(runs: Sequence[Run], changed: Collection[str], tuned: Collection[str]) -> list[Run]:
    """Set `setting` of each run: the choices besides arm and seed, typed or not. Runs of one setting share a table.

    Left out are the keys that the study tunes, what is no part of a run's identity, and overrides without effect: runs
    without the override have the same value.

    Args:
        runs: the runs of one study.
        changed: the config groups and dotted keys that its arms change.
        tuned: the keys that the study tunes.
    """
    found = []
    for run in runs:
        typed = {key: value for key, value in run.typed.items() if key not in tuned}
        found.append(replace(run, setting=typed | _free_choices(run, changed)))
    alike: dict[Choices, list[Run]] = {}
    for run in found:
        alike.setdefault(_choices(run), []).append(run)

    @cache
    def defaults(key: str, choices: Choices, arm: str | None) -> list[Any]:
        """The values of `key` where no override sets it, each once, in the runs of an arm, or of all."""
        values: list[Any] = []
        for other in alike[choices]:
            if key not in other.typed and arm in (None, other.arm):
                its = value_at(other.config, key)
                values += [its] * (its not in values)
        return values

    def has_no_effect(key: str, run: Run) -> bool:
        """Whether the runs without an override of `key` have the same value as this run with one.

        Compared are runs of the same arm; if there are none and no arm changes the key, runs of all arms.
        """
        value = value_at(run.config, key)
        if key not in run.typed or key in run.choices or (value is None and run.typed[key] != "null"):
            return False
        choices = _choices(run)
        own = defaults(key, choices, run.arm)
        others = own if own or _is_touched(changed, key) else defaults(key, choices, None)
        return bool(others) and all(one == value for one in others)

    return [
        replace(run, setting={key: value for key, value in run.setting.items() if not has_no_effect(key, run)})
        for run in found
    ]


def _choices(run: Run) -> Choices:
    """Return the choices of config groups in the setting."""
    return frozenset((key, value) for key, value in run.setting.items() if key in run.choices)


def _is_touched(changed: Collection[str], name: str) -> bool:
    """Return whether an arm changes a config group or key, or one that contains it."""
    return any(f"{name.replace('.', '/')}/".startswith(f"{one.replace('.', '/')}/") for one in changed)


def _free_choices(run: Run, changed: Collection[str]) -> dict[str, str]:
    """Return the choices of the config groups that no arm changes and that may change a result."""
    return {
        group: format_value(choice)
        for group, choice in run.choices.items()
        if not (group in NOT_A_SETTING or run.is_immaterial(group))
        and not any(f"{group}/".startswith(f"{key}/") for key in changed)
    }
