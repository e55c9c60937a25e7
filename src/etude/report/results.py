"""Reading what the runs of a study left in `runs/`, and telling apart what must not be averaged."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from etude.config.material import material
from etude.config.stale import Code, code_of
from etude.config.studies import Study, value_at
from etude.errors import UserError, did_you_mean
from etude.report.wording import counted
from etude.rundir import RunDir
from etude.terminal import told

# What says which run it is, or cannot change what it finds.
_NOT_A_SETTING = {"experiment", "study", "arm", "seed", "hydra", "stale", "runs_dir", "cache_dir", "trainer", "logger"}


@dataclass(frozen=True)
class Run:
    """One run. `result` is empty while it is not finished."""

    run_dir: RunDir
    arm: str
    seed: int
    config: dict[str, Any]
    result: dict[str, Any]
    typed: dict[str, str]  # what was typed besides arm and seed: group or key -> choice
    setting: dict[str, str]  # all that was chosen besides arm and seed, typed or not
    changed: float  # when it last wrote, in seconds since the epoch
    code: Code | None  # of a finished one: was it made by the code of today?

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return bool(self.result)

    def chosen(self, key: str) -> str:
        """What was chosen for a group or a config key, as it is typed."""
        choice = self.config.get("choices", {}).get(key, value_at(self.config, key))
        return self.setting.get(key, told(choice))

    @property
    def material(self) -> dict[str, Any]:
        """What of its config may change what it finds, besides the seed, and what was chosen for it."""
        chosen = self.config.get("choices", {}).items()
        choices = {group: choice for group, choice in chosen if group not in _NOT_A_SETTING}
        return {key: value for key, value in material(self.config).items() if key != "seed"} | {"choices": choices}

    def differs_only_in_seed(self, other: "Run") -> bool:
        """Whether this run and another of its arm may be averaged: the same config but for the seed, the same text."""

        def setting(run: Run) -> tuple[Any, ...]:
            return run.material | {"choices": {}}, run.result.get("store")

        return setting(self) == setting(other)


@dataclass(frozen=True)
class Selection:
    """The runs that one table may hold, all of one setting, and what was left out of it."""

    runs: list[Run]  # finished, the baseline's first; those of one arm differ in their seeds alone
    unfinished: list[Run]
    notes: list[str]


def read_runs(study: Study, runs_dir: Path) -> tuple[list[Run], list[str]]:
    """Every run of the study, and a sentence for each that could not be read."""
    runs, notes = [], []
    for path in sorted((runs_dir / study.name).glob("*/seed*/")):
        run_dir = RunDir(path)
        if path.parent.name not in study.arms:
            notes.append(f"Left out: {path}, for the study has no arm {path.parent.name}.")
            continue
        if not run_dir.config_file.is_file():
            notes.append(f"Left out: {path}, which is no run: it has no config.yaml.")
            continue
        try:
            run = _read(run_dir, study.changed, study.tune)
            if run.config.get("arm", run.arm) == run.arm:
                runs.append(run)
            else:
                notes.append(f"Left out: {path}, which is a run of the arm {run.config['arm']}.")
        except UserError as error:
            notes.append(f"Left out: {error}.")
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            notes.append(f"Left out: {run_dir.path}, which cannot be read ({type(error).__name__}).")
    return runs, notes


def select(study: Study, runs: Sequence[Run], where: Mapping[str, str]) -> Selection:
    """The runs of one setting: the one with most arms, the newest of equals.

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
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.arm != study.baseline):
        if run.finished:
            groups.setdefault(tuple(sorted(run.setting.items())), []).append(run)
    first = {key: group[0] for key, group in groups.items()}
    fitting = [key for key, run in first.items() if all(run.chosen(k) == value for k, value in where.items())]
    if not fitting:
        raise UserError(_nothing_fits(list(first.values()), where))
    best = max(fitting, key=lambda k: (len({run.arm for run in groups[k]}), max(run.changed for run in groups[k])))
    setting = groups[best][0].setting
    notes = [_left_out(study, group, setting) for key, group in groups.items() if key != best]
    newest = {run.arm: run for run in sorted(groups[best], key=lambda run: run.changed)}
    alike = [run for run in groups[best] if run.differs_only_in_seed(newest[run.arm])]
    if older := len(groups[best]) - len(alike):
        notes.append(
            f"Left out: {counted(older)} of a config or a text that a newer run of the same arm no longer has."
        )
    chosen, twice = _once(alike)
    notes += twice
    unfinished = [run for run in runs if not run.finished and run.setting == setting]
    return Selection(chosen, unfinished, notes)


def _of_seeds(study: Study, runs: Sequence[Run], where: Mapping[str, str]) -> Selection:
    """The selection among the runs of some seeds."""
    words = where["seed"].split(",")
    if not all(word.isdecimal() for word in words):
        raise UserError(f"seed={where['seed']}: name the seeds that the table shall hold, such as seed=11,12,13")
    seeds = {int(word) for word in words}
    kept = [run for run in runs if run.seed in seeds]
    if not any(run.finished for run in kept):
        there = ", ".join(str(seed) for seed in sorted({run.seed for run in runs if run.finished}))
        raise UserError(f"no finished run has seed={where['seed']}; there are {there}")
    found = select(study, kept, {key: value for key, value in where.items() if key != "seed"})
    others = sum(run.finished for run in runs) - sum(run.finished for run in kept)
    note = f"Left out, as asked: {counted(others)} of other seeds than {where['seed']}."
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


def _read(run_dir: RunDir, touched: Collection[str], tuned: Collection[str]) -> Run:
    """A run; which values of what is `tuned` it has, is no setting by which tables are parted (`tuning.py`)."""
    config, result = run_dir.config(), run_dir.result() if run_dir.finished else {}
    file = run_dir.result_file if run_dir.finished else run_dir.config_file
    typed = _typed(run_dir.overrides_file.read_text(encoding="utf-8").splitlines())
    typed = {key: value for key, value in typed.items() if key not in tuned}
    setting = typed | _free(config.get("choices", {}), touched)
    if result:
        for key in ("test.perplexity", "test.bleu", "test.sentences", "parameters", "steps"):
            float(value_at(result, key))  # the table cannot do without
    changed = file.stat().st_mtime
    code = code_of(run_dir, result) if result else None
    return Run(run_dir, run_dir.path.parent.name, int(config["seed"]), config, result, typed, setting, changed, code)


def _free(choices: Mapping[str, Any], touched: Collection[str]) -> dict[str, str]:
    """The choices in groups that no arm touches."""
    return {
        group: told(choice)
        for group, choice in choices.items()
        if group not in _NOT_A_SETTING and not any(f"{group}/".startswith(f"{key}/") for key in touched)
    }


def _typed(overrides: Iterable[str]) -> dict[str, str]:
    """What was typed, less what is no setting."""
    typed = {}
    for override in overrides:
        key, _, value = override.partition("=")
        key = key.lstrip("+~")
        if re.split(r"[./]", key)[0] not in _NOT_A_SETTING and not key.startswith("data."):
            typed[key] = value
    return typed


def _nothing_fits(runs: Sequence[Run], where: Mapping[str, str]) -> str:
    for key, value in where.items():
        there = {run.chosen(key) for run in runs}
        if there == {told(None)}:
            known = {name for run in runs for name in (*run.setting, *run.config.get("choices", {}))}
            return f"{key}={value}: the runs know no {key}; {did_you_mean(key, known)}"
        if value not in there:
            return f"no finished run has {key}={value}; {did_you_mean(value, there)}"
    return f"no finished run has {' and '.join(f'{key}={value}' for key, value in where.items())} at once"


def _left_out(study: Study, group: Sequence[Run], setting: Mapping[str, str]) -> str:
    theirs = group[0].setting
    other = [f"{key}={theirs[key]}" for key in sorted(theirs) if theirs[key] != setting.get(key)]
    if other:
        return f"Left out: {counted(len(group))} of another setting: etude report {study.name} {' '.join(other)}"
    missing = [f"{key}={setting[key]}" for key in sorted(setting) if key not in theirs]
    return f"Left out: {counted(len(group))} without {' '.join(missing)}."
