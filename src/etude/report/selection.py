"""Telling apart what must not be averaged: the runs that one table may hold, all of one setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.report.tuning import Readings, readings
from etude.report.versions import TODAY, by_text
from etude.report.wording import format_count
from etude.runs.records import Run
from etude.studies.study import Study, value_at
from etude.terminal import told


@dataclass(frozen=True)
class Selection:
    """The runs that one table may hold, all of one setting, and what was left out of it.

    Attributes:
        runs: finished, the baseline's first; those of one arm differ in their seeds alone.
        unfinished: those of the setting that have begun.
        notes: sentences on what was left out.
        best: of a study that tunes its arms, the runs with each arm at its own best; empty where nothing was tuned.
        read: how the runs of such a study were read.
    """

    runs: list[Run]
    unfinished: list[Run]
    notes: list[str]
    best: list[Run] = field(default_factory=list)
    read: Readings = field(default_factory=Readings)


def select(study: Study, runs: Sequence[Run], where: Mapping[str, str]) -> Selection:
    """The runs of one setting: of the text as it is now, with the most arms, the newest of equals.

    Args:
        study: the study.
        runs: its runs, at least one of them finished.
        where: what the setting must be, such as {"scale": "pocket"}; of what the arms change, the baseline's counts.
            {"seed": "11,12,13"} leaves all other seeds out, pilot runs for example.

    Raises:
        UserError: no finished run is as `where` asks.
    """
    if "arm" in where:
        raise UserError(f"arm={where['arm']}: a table holds every arm that there is; leave it out")
    if "seed" in where:
        return _of_seeds(study, runs, where)
    runs = by_text(runs, always="text" in where)
    asked = {key: value for key, value in where.items() if key not in study.tune}
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.arm != study.baseline):
        if run.finished:
            groups.setdefault(tuple(sorted(run.setting.items())), []).append(run)
    first = {key: group[0] for key, group in groups.items()}
    fitting = [key for key, run in first.items() if all(run.has(k, value) for k, value in asked.items())]
    if not fitting:
        raise UserError(_nothing_fits(list(first.values()), asked))
    best = max(fitting, key=lambda key: _rank(groups[key]))
    setting = groups[best][0].setting
    notes = [_left_out(study, group, setting) for key, group in groups.items() if key != best]
    read = readings(study, groups[best], {key: where[key] for key in study.tune if key in where})
    if not read.shared:
        raise UserError(_nothing_fits(groups[best], where))
    chosen, left = _alike(read.shared)
    suited, _ = _alike(read.best)
    notes += left + read.notes
    begun = [run for run in runs if not run.finished and run.setting == setting and run.seed not in read.pilots]
    return Selection(chosen, _awaited(study, begun, [*chosen, *suited]), notes, suited, read)


def _rank(group: Sequence[Run]) -> tuple[bool, int, float]:
    """What a group of one setting is preferred by."""
    outdated = group[0].setting.get("text", TODAY) != TODAY
    return not outdated, len({run.arm for run in group}), max(run.changed for run in group)


def _awaited(study: Study, begun: Sequence[Run], shown: Sequence[Run]) -> list[Run]:
    """Of the runs that have begun, those that the table will hold: their config is that of the runs it shows.

    What is not in the setting tells them apart as well: a YAML edited since, say. Of an arm that has none to show, the
    newest that has begun counts.
    """
    newest: dict[tuple[Any, ...], Run] = {}
    for run in sorted([*begun, *shown], key=lambda run: (run.finished, run.changed)):
        newest[_variety(study, run)] = run
    return [run for run in begun if run.differs_only_in_seed(newest[_variety(study, run)])]


def _variety(study: Study, run: Run) -> tuple[Any, ...]:
    """The arm, and the values of what is tuned."""
    return run.arm, *(value_at(run.config, key) for key in study.tune)


def _alike(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Of each arm the runs that differ in their seeds alone from its newest, each once."""
    newest = {run.arm: run for run in sorted(runs, key=lambda run: run.changed)}
    alike = [run for run in runs if run.differs_only_in_seed(newest[run.arm])]
    notes = []
    if older := len(runs) - len(alike):
        notes.append(
            f"Left out: {format_count(older)} of a config or a text that a newer run of the same arm no longer has."
        )
    chosen, twice = _once(alike)
    return chosen, notes + twice


def _of_seeds(study: Study, runs: Sequence[Run], where: Mapping[str, str]) -> Selection:
    """The selection among the runs of some seeds."""
    words = where["seed"].split(",")
    if not all(word.isdecimal() for word in words):
        raise UserError(f"seed={where['seed']}: name the seeds that the table shall hold, such as seed=11,12,13")
    seeds = {int(word) for word in words}
    trials = set() if seeds & set(study.pilots) else set(study.pilots)  # they say what suits an arm
    kept = [run for run in runs if run.seed in seeds | trials]
    if not any(run.finished and run.seed in seeds for run in kept):
        there = ", ".join(str(seed) for seed in sorted({run.seed for run in runs if run.finished}))
        raise UserError(f"no finished run has seed={where['seed']}; there are {there}")
    found = select(study, kept, {key: value for key, value in where.items() if key != "seed"})
    others = sum(run.finished for run in runs) - sum(run.finished for run in kept)
    note = f"Left out, as asked: {format_count(others)} of other seeds than {where['seed']}."
    return replace(found, notes=[*found.notes, *([note] if others else [])])


def _once(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """The newest of runs that are the same one, a copied directory for example: twice the same is no second seed."""
    newest = {(run.arm, run.seed): run for run in sorted(runs, key=lambda run: run.changed)}
    same = {id(run): newest[run.arm, run.seed] for run in runs}
    notes = [
        f"Left out: {run.run_dir.path}, the same run as {same[id(run)].run_dir.path}."
        for run in runs
        if same[id(run)] is not run
    ]
    return [run for run in runs if same[id(run)] is run], notes


def _nothing_fits(runs: Sequence[Run], where: Mapping[str, str]) -> str:
    for key, value in where.items():
        there = {run.chosen(key) for run in runs}
        if there == {told(None)}:
            known = {name for run in runs for name in (*run.setting, *run.config.get("choices", {}))}
            return f"{key}={value}: the runs know no {key}; {did_you_mean(key, known)}"
        if not any(run.has(key, value) for run in runs):
            return f"no finished run has {key}={value}; {did_you_mean(value, there)}"
    return f"no finished run has {' and '.join(f'{key}={value}' for key, value in where.items())} at once"


def _left_out(study: Study, group: Sequence[Run], setting: Mapping[str, str]) -> str:
    theirs = group[0].setting
    other = [f"{key}={theirs[key]}" for key in sorted(theirs) if theirs[key] != setting.get(key)]
    if other:
        return f"Left out: {format_count(len(group))} of another setting: etude report {study.name} {' '.join(other)}"
    missing = [f"{key}={setting[key]}" for key in sorted(setting) if key not in theirs]
    return f"Left out: {format_count(len(group))} without {' '.join(missing)}."
