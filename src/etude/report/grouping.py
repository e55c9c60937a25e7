"""Which runs belong together: those of one setting in one table, those of one config and text in one mean.

A setting is what was typed beside the arm, and what was chosen in the config groups that no arm changes. Nothing is
composed here: a run holds its config as it was frozen.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from etude.report.wording import format_count
from etude.store.identity import canonical
from etude.store.overrides import NOT_A_SETTING, distinguishing_overrides
from etude.store.records import Run
from etude.study.arm_names import find_arm, is_arm
from etude.study.arms import override_key, split_override
from etude.study.metrics import Metric
from etude.study.study import Paper, Study, metrics_of, value_at
from etude.terminal import format_value, shorten_value

SETTINGS = ("data", "scale", "budget", "task")
"""Groups whose choices make no arms of runs without a study: runs with other ones are in tables of their own."""


def with_settings(study: Study, runs: Sequence[Run]) -> list[Run]:
    """Set `setting` of each run of a study.

    Left out are the keys that the study tunes, what is no part of a run's identity, and overrides without effect: the
    runs without the override, of the same arm, have the same value. If an arm has no such run, and no arm changes the
    key, the runs of all arms are compared. What is typed and the arm has by itself is left out, too: it is the same
    run. Such a run is returned once more for each setting whose further overrides its arm has by itself.
    """
    found = [replace(run, setting=_free_choices(study, run) | _typed(study, run)) for run in runs]
    keys = {key for run in found for key in run.setting if key not in run.choices}
    untyped: dict[Any, list[Any]] = defaultdict(list)  # values of a key where it was not typed
    for run in found:
        for key in keys - run.setting.keys():
            for arm in (run.arm, None):
                untyped[_choices(run), key, arm].append(value_at(run.config, key))

    def has_effect(run: Run, key: str) -> bool:
        value = value_at(run.config, key)
        if key in run.choices or (value is None and run.setting[key] != "null"):
            return True
        others = untyped[_choices(run), key, run.arm]
        if not others and not _is_within(key, study.changed):
            others = untyped[_choices(run), key, None]
        return not others or any(other != value for other in others)

    found = [
        replace(run, setting={key: value for key, value in run.setting.items() if has_effect(run, key)})
        for run in found
    ]
    settings = {tuple(sorted(run.setting.items())): run.setting for run in found}.values()
    return [replace(run, setting=one) for run in found for one in settings if _fits(study, run, one)]


def _fits(study: Study, run: Run, setting: Mapping[str, str]) -> bool:
    """Return whether a setting is that of a run, or has further overrides which the arm of the run has by itself."""
    further = setting.items() - run.setting.items()
    return run.setting.items() <= setting.items() and all(
        _is_own(study, run, key, value) and _has(run, f"{key}={value}") for key, value in further
    )


def _typed(study: Study, run: Run) -> dict[str, str]:
    return {k: v for k, v in run.typed.items() if k not in study.tune and not _is_own(study, run, k, v)}


def _is_own(study: Study, run: Run, key: str, value: str) -> bool:
    """Return whether the arm of a run gives a key this value."""
    own = dict(map(split_override, study.arms.get(run.arm, [])))
    return key in own and is_same(own[key], value)


def _free_choices(study: Study, run: Run) -> dict[str, str]:
    """Return the choices of the config groups that no arm changes and that may change a result."""
    free = (g for g in run.choices if g not in NOT_A_SETTING and not run.is_immaterial(g))
    return {group: format_value(run.choices[group]) for group in free if not _is_within(group, study.changed)}


def _choices(run: Run) -> frozenset[tuple[str, str]]:
    """Return the choices of config groups in the setting."""
    return frozenset((key, value) for key, value in run.setting.items() if key in run.choices)


def _is_within(name: str, changed: Collection[str]) -> bool:
    """Return whether a config group or key is one of those that arms change, or within one; GROUP@PLACE is in PLACE."""
    return any(_place(name).startswith(_place(one)) for one in changed)


def _place(name: str) -> str:
    return f"{(name.partition('@')[2] or name).replace('.', '/')}/"


def by_setting(runs: Iterable[Run]) -> list[list[Run]]:
    """Group the runs by setting; runs of different settings never share a table."""
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(sorted(run.setting.items())), []).append(run)
    return list(groups.values())


def newest_configs(study: Study, runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Return of each arm the runs of its newest config and text, each seed once; and sentences on what was left out.

    Other configs are those from before an edit of study.yaml or `conf/`; those with the values that study.yaml gives
    the arm now come first, for nothing else would be trained. Of several runs with the same arm, config and seed, such
    as a copied directory, the newest counts.
    """
    by_age = sorted(runs, key=lambda run: (_is_of_today(study, run), run.changed))
    last = {run.arm: run for run in by_age}
    alike = [run for run in by_age if run.differs_only_in_seed(last[run.arm])]
    newest = {(run.arm, run.seed): run for run in alike}
    others = len(runs) - len(alike)
    notes = [f"Left out: {format_count(others)} of another config or text than those shown of the same arm."]
    notes = notes * bool(others) + [
        f"Left out: {run.run_dir.path}, the same run as {same.run_dir.path}."
        for run in alike
        if (same := newest[run.arm, run.seed]) is not run
    ]
    return [run for run in runs if newest.get((run.arm, run.seed)) is run], notes


def edited_arms(study: Study, runs: Iterable[Run]) -> list[str]:
    """Return the arms some of whose runs do not have the values that study.yaml gives the arm now."""
    return list(dict.fromkeys(run.arm for run in runs if not _is_of_today(study, run)))


def _is_of_today(study: Study, run: Run) -> bool:
    return all(_has(run, override) for override in study.arms[run.arm])


def _has(run: Run, override: str) -> bool:
    """Return whether a run has the value of an override of its arm, as far as it is known and was not typed over."""
    key, text = split_override(override)
    known = [run.choices.get(key), value_at(run.written, key), value_at(run.config, key)]
    if override.startswith("~") or key in run.typed or all(value is None for value in known):
        return True
    return any(is_same(text, value) for value in known) or ("${" in text and run.written is run.config)


def is_same(text: str | float, value: Any) -> bool:
    """Return whether a value as it stands in study.yaml or an override is the value of a config."""
    if text == value or str(text) == format_value(value):
        return True
    try:
        return bool(float(text) == (float(value) if isinstance(value, str) else value))  # YAML takes 1e-5 for text
    except ValueError:
        return isinstance(value, list | dict) or str(text) == str(value).lower()


def make_study(name: str, runs: Sequence[Run], settings: Collection[str] = SETTINGS) -> tuple[Study, list[Run]]:
    """Make a study of runs that belong to none, such as `single`; return it with the runs, each of one of its arms.

    Runs whose configs differ in the seed alone are of one arm, however they were typed. It is named by the fewest
    overrides that give it, without those that all runs have: "model.heads=2 schedule=wsd". The baseline is the arm with
    the fewest.

    Args:
        name: the name of the study.
        runs: at least one run.
        settings: config groups whose overrides remain overrides of the runs.
    """
    typed = [_making_an_arm(run, settings) for run in runs]
    common = set.intersection(*map(set, typed))
    configs = [canonical(run.recipe | {"choices": {}, "text": run.text}) for run in runs]
    several = len({run.study for run in runs}) > 1
    own: dict[str, tuple[str, ...]] = {}  # config -> the name of its arm, "" if it is none, and its overrides
    for run, config, words in zip(runs, configs, typed, strict=True):
        arm = f"{run.study}/{run.arm}" if several else run.arm if run.arm != "base" else ""
        its = (arm, *(word for word in words if word not in common))
        own[config] = min(own.get(config, its), its, key=len)
    names = _name_arms(own.values())
    of_arm = {own[config]: _arm_overrides(run) for run, config in zip(runs, configs, strict=True)}
    ordered = sorted(own.values(), key=lambda its: len(of_arm[its]) + len(its))
    arms = {names[its]: [*of_arm[its], *its[1:]] for its in ordered}
    keys = {override_key(word) for words in arms.values() for word in words}
    metrics: dict[str, Metric] = {}
    for study, task in dict.fromkeys((run.study, run.choices.get("task", "translation")) for run in runs):
        metrics |= metrics_of(study, task)
    made = Study(name, name, next(iter(arms)), arms, {}, Paper(), metrics=metrics)
    return made, [_of_arm(run, names[own[config]], keys) for run, config in zip(runs, configs, strict=True)]


def _arm_overrides(run: Run) -> list[str]:
    """Return what the arm of a study, or several combined, gave a run."""
    named = str(run.choices.get("experiment"))
    return find_arm(named)[2] if is_arm(named) else []


def _name_arms(arms: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Name arms by their words, with rounded numbers if these tell the arms apart."""
    whole = {words: " ".join(filter(None, words)) or "base" for words in arms}
    short = {words: " ".join(map(_shorten, name.split(" "))) for words, name in whole.items()}
    return short if len(set(short.values())) == len(whole) else whole


def _shorten(word: str) -> str:
    key, equals, value = word.partition("=")
    return f"{key}{equals}{shorten_value(value)}"


def _making_an_arm(run: Run, settings: Collection[str]) -> list[str]:
    """Return the overrides of a run that may change its result, without those of `settings`."""
    allowed = run.typed.keys() - settings
    return [word for word in distinguishing_overrides(run.overrides) if override_key(word) in allowed]


def _of_arm(run: Run, arm: str, keys: Collection[str]) -> Run:
    """Return the run as one of an arm, whose overrides, of `keys`, it no longer has itself."""
    overrides = [word for word in distinguishing_overrides(run.overrides) if override_key(word) not in keys]
    return replace(run, arm=arm, config=run.config | {"arm": arm}, overrides=overrides)
