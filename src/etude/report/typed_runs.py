"""Make a study of runs that belong to none, such as `single`: what was typed for them makes its arms."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from etude.runs.records import Run
from etude.runs.typed import distinguishing_overrides
from etude.studies.arms import override_key
from etude.studies.metrics import Metric
from etude.studies.study import Paper, Study, metrics_of
from etude.terminal import shorten_value

SETTINGS = ("data", "scale", "budget", "task")
"""Groups whose choices make no arms: runs with other ones are in tables of their own."""


def make_study(name: str, runs: Sequence[Run], settings: Collection[str] = SETTINGS) -> tuple[Study, list[Run]]:
    """Make a study of some runs, and return it with the runs, each of one of its arms.

    Runs whose configs differ in the seed alone are of one arm, however they were typed. It is named by the fewest
    overrides that give it, without those that all runs have: "model.heads=2 schedule=wsd". The baseline is the arm with
    the fewest.

    Args:
        name: the name of the study.
        runs: at least one run.
        settings: config groups whose overrides remain overrides of the runs.
    """
    typed = [_overrides(run, settings) for run in runs]
    common = set.intersection(*map(set, typed))
    configs = [json.dumps(run.material | {"choices": {}}, sort_keys=True, default=str) for run in runs]
    own: dict[str, tuple[str, ...]] = {}  # config -> the name of its arm, "" if it is none, and its overrides
    for run, config, words in zip(runs, configs, typed, strict=True):
        its = (run.arm if run.arm != "base" else "", *(word for word in words if word not in common))
        own[config] = min(own.get(config, its), its, key=len)
    names = _name_arms(own.values())
    arms = {names[its]: [*its[1:]] for its in sorted(own.values(), key=len)}
    keys = {override_key(word) for words in arms.values() for word in words}
    metrics: dict[str, Metric] = {}
    for study, task in dict.fromkeys((run.study, run.choices.get("task", "translation")) for run in runs):
        metrics |= metrics_of(study, task)
    made = Study(name, name, next(iter(arms)), arms, {}, Paper(), metrics=metrics)
    return made, [_of_arm(run, names[own[config]], keys) for run, config in zip(runs, configs, strict=True)]


def only_arms(study: Study, runs: Sequence[Run]) -> Study:
    """Return the study with the arms of `runs` only; others are of another setting."""
    there = {run.arm for run in runs}
    arms = {arm: words for arm, words in study.arms.items() if arm in there}
    return replace(study, arms=arms, baseline=next(iter(arms)))


def _name_arms(arms: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Name arms by their words, with rounded numbers if these tell the arms apart."""
    whole = {words: " ".join(filter(None, words)) or "base" for words in arms}
    short = {words: " ".join(map(_shorten, name.split(" "))) for words, name in whole.items()}
    return short if len(set(short.values())) == len(whole) else whole


def _shorten(word: str) -> str:
    key, equals, value = word.partition("=")
    return f"{key}{equals}{shorten_value(value)}"


def _overrides(run: Run, settings: Collection[str]) -> list[str]:
    """Return the overrides of a run that may change its result, without those of `settings`."""
    allowed = run.typed.keys() - settings
    return [word for word in distinguishing_overrides(run.overrides) if override_key(word) in allowed]


def _of_arm(run: Run, arm: str, keys: Collection[str]) -> Run:
    """Return the run as one of an arm, whose overrides, of `keys`, it no longer has itself."""
    overrides = [word for word in distinguishing_overrides(run.overrides) if override_key(word) not in keys]
    return replace(run, arm=arm, config=run.config | {"arm": arm}, overrides=overrides)
