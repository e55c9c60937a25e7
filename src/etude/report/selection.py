"""Telling apart what must not be averaged: the runs that one table may hold, all of one setting."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.report.tuning import Readings, separate_trials, tuned_values
from etude.report.wording import format_count
from etude.runs.records import Run
from etude.studies.study import Study
from etude.terminal import format_value

TODAY = "today"  # the version of runs whose text is the one that their config gives now
_SHORT = 8  # digits of a fingerprint that tell texts apart


@dataclass(frozen=True)
class Selection:
    """The runs that one table may hold, all of one setting, and what was left out of it."""

    runs: list[Run]  # finished, the baseline's first; those of one arm differ in their seeds alone
    unfinished: list[Run]  # those of the setting that have begun
    notes: list[str]  # sentences on what was left out
    best: list[Run] = field(default_factory=list)  # the runs with each arm at its own best, where anything was tuned
    readings: Readings = field(default_factory=Readings)


def select(study: Study, runs: Sequence[Run], where: Mapping[str, str], unreadable: Sequence[str] = ()) -> Selection:
    """The runs of one setting: of the text as it is now, with the most arms, the newest of equals.

    Args:
        study: what the runs are of, at least one of them finished.
        runs: all there are.
        where: what the setting must be, such as {"scale": "pocket"}; of what the arms change, the baseline's counts.
            {"seed": "11,12,13"} leaves all other seeds out, pilot runs for example.
        unreadable: sentences on runs that could not be read, which are left out too.

    Raises:
        UserError: no finished run is as `where` asks.
    """
    if "arm" in where:
        raise UserError(f"arm={where['arm']}: a table holds every arm that there is; leave it out")
    seeds_left_out: list[str] = []
    if "seed" in where:
        runs, seeds_left_out = _of_seeds(study, runs, where["seed"])
        where = {key: value for key, value in where.items() if key != "seed"}
    runs = _by_text(runs, always="text" in where)
    asked = {key: value for key, value in where.items() if key not in study.tune}
    groups = _by_setting(run for run in sorted(runs, key=lambda run: run.arm != study.baseline) if run.finished)
    fitting = [group for group in groups if all(group[0].has(key, value) for key, value in asked.items())]
    if not fitting:
        raise UserError(_explain_no_fit([group[0] for group in groups], asked))

    def preference(group: Sequence[Run]) -> tuple[bool, int, float]:
        is_todays = group[0].setting.get("text", TODAY) == TODAY
        return is_todays, len({run.arm for run in group}), max(run.changed for run in group)

    best = max(fitting, key=preference)
    setting = best[0].setting
    notes = [_explain_left_out(study, group, setting) for group in groups if group is not best]
    readings = separate_trials(study, best, {key: where[key] for key in study.tune if key in where})
    if not readings.shared:
        raise UserError(_explain_no_fit(best, where))
    chosen, left = _choose_alike(readings.shared)
    suited, _ = _choose_alike(readings.best)
    notes += [*left, *readings.notes, *seeds_left_out, *unreadable]
    begun = [run for run in runs if not run.finished and run.setting == setting and run.seed not in readings.pilots]
    return Selection(chosen, _choose_unfinished(study, begun, [*chosen, *suited]), notes, suited, readings)


def _by_setting(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs that may share a table, apart from others."""
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(sorted(run.setting.items())), []).append(run)
    return list(groups.values())


def _choose_unfinished(study: Study, begun: Sequence[Run], shown: Sequence[Run]) -> list[Run]:
    """Of the runs that have begun, those that the table will hold: their config is that of the runs it shows.

    A YAML edited since tells them apart as well. Of an arm that has none to show, the newest that has begun counts.
    """
    by_age = sorted([*begun, *shown], key=lambda run: (run.finished, run.changed))
    newest = {(run.arm, tuned_values(study, run)): run for run in by_age}
    return [run for run in begun if run.differs_only_in_seed(newest[run.arm, tuned_values(study, run)])]


def _choose_alike(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Of each arm the runs that differ in their seeds alone from its newest, each once.

    The newest of runs that are the same one, a copied directory for example, counts: twice the same is no second seed.
    """
    newest = {run.arm: run for run in sorted(runs, key=lambda run: run.changed)}
    alike = [run for run in runs if run.differs_only_in_seed(newest[run.arm])]
    notes = []
    if older := len(runs) - len(alike):
        notes.append(
            f"Left out: {format_count(older)} of a config or a text that a newer run of the same arm no longer has."
        )
    last = {(run.arm, run.seed): run for run in sorted(alike, key=lambda run: run.changed)}
    notes += [
        f"Left out: {run.run_dir.path}, the same run as {same.run_dir.path}."
        for run in alike
        if (same := last[run.arm, run.seed]) is not run
    ]
    return [run for run in alike if last[run.arm, run.seed] is run], notes


def _of_seeds(study: Study, runs: Sequence[Run], asked: str) -> tuple[list[Run], list[str]]:
    """The runs of some seeds, "11,12,13", and a sentence on the others."""
    words = asked.split(",")
    if not all(word.isdecimal() for word in words):
        raise UserError(f"seed={asked}: name the seeds that the table shall hold, such as seed=11,12,13")
    seeds = {int(word) for word in words}
    trials = set() if seeds & set(study.pilots) else set(study.pilots)  # they say what suits an arm
    kept = [run for run in runs if run.seed in seeds | trials]
    if not any(run.finished and run.seed in seeds for run in kept):
        there = ", ".join(str(seed) for seed in sorted({run.seed for run in runs if run.finished}))
        raise UserError(f"no finished run has seed={asked}; there are {there}")
    others = sum(run.finished for run in runs) - sum(run.finished for run in kept)
    return kept, [f"Left out, as asked: {format_count(others)} of other seeds than {asked}."] if others else []


def _explain_no_fit(runs: Sequence[Run], where: Mapping[str, str]) -> str:
    for key, value in where.items():
        there = {run.chosen(key) for run in runs}
        if there == {format_value(None)}:
            known = {name for run in runs for name in (*run.setting, *run.config.get("choices", {}))}
            return f"{key}={value}: the runs know no {key}; {did_you_mean(key, known)}"
        if not any(run.has(key, value) for run in runs):
            return f"no finished run has {key}={value}; {did_you_mean(value, there)}"
    return f"no finished run has {' and '.join(f'{key}={value}' for key, value in where.items())} at once"


def _explain_left_out(study: Study, group: Sequence[Run], setting: Mapping[str, str]) -> str:
    theirs = group[0].setting
    other = [f"{key}={theirs[key]}" for key in sorted(theirs) if theirs[key] != setting.get(key)]
    if other:
        return f"Left out: {format_count(len(group))} of another setting: etude report {study.name} {' '.join(other)}"
    missing = [f"{key}={setting[key]}" for key in sorted(setting) if key not in theirs]
    return f"Left out: {format_count(len(group))} without {' '.join(missing)}."


def _by_text(runs: Sequence[Run], *, always: bool = False) -> list[Run]:
    """The same runs, `text` being a setting where an arm has met several texts in one setting, or `always`.

    Edited files make other runs, and a table holds those of one version.
    """
    named: dict[int, Run] = {}
    known: dict[str, str] = {}
    for group in _by_setting(runs):
        met = [arm for arm, text in {(run.arm, run.text) for run in group} if text]
        if always or len(met) > len(set(met)):
            named |= {id(run): _name_text(run, group, known) for run in group if run.text}
    return [named.get(id(run), run) for run in runs]


def _name_text(run: Run, group: Sequence[Run], known: dict[str, str]) -> Run:
    """The run with its text in its setting: "today", or the first digits of its fingerprint.

    Two files under two names may both be as they were: then neither is today's more than the other.
    """
    todays = {other.text for other in group if other.arm == run.arm and other.text == _on_disk(other.config, known)}
    return replace(run, setting=run.setting | {"text": TODAY if todays == {run.text} else run.text[:_SHORT]})


def _on_disk(config: Mapping[str, Any], known: dict[str, str]) -> str:
    """The fingerprint of the text that a config gives now, asked once a text; nothing where there is none."""
    from hydra.errors import HydraException  # a report of runs that all met one text does without

    from etude.config.identity import fingerprint

    key = json.dumps(config.get("data"), sort_keys=True)
    if key not in known:
        known[key] = ""
        with suppress(UserError, HydraException, OSError, KeyError, AttributeError):
            known[key] = fingerprint(dict(config))
    return known[key]
