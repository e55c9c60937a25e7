"""What a search has found so far, from its journal and its runs.

A trial that is not finished is shown with the step that it came to and its score there. Such a score is never compared
with, nor averaged into, those at the end.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.errors import UserError
from etude.report.confirmation import Confirmed, Selection
from etude.report.statistics import RankCorrelation, Scores, pooled, spearman
from etude.search.recorded import RecordedSearch, RecordedTrial, read_journal
from etude.search.score import best_of_curve, flat, read_value
from etude.store.divergence import divergence
from etude.store.records import leaving_out
from etude.store.run_dir import RunDir
from etude.store.run_state import State
from etude.study.arms import override_key, split_override
from etude.study.metrics import Metric, default_metrics
from etude.study.study import metrics_of, value_at
from etude.terminal import NUMBER

_MAX_STEPS = re.compile(r"^budget:\n(?:  .*\n)*?  max_steps: (\d+)$", re.MULTILINE)

if TYPE_CHECKING:
    from pandas import DataFrame


_LOSS = Metric("loss", "loss", "loss", better="lower", digits=3, over="tokens")
_TEXTS = {"valid": "validation", "test": "test"}


@dataclass(frozen=True)
class Tried:
    """A trial.

    Attributes:
        recorded: what the journal says of it.
        words: key -> the value that it tries.
        runs: its runs, one for each seed.
        results: those of its finished runs.
        steps: of its full budget, of all seeds; None if its config was refused or deleted.
    """

    recorded: RecordedTrial
    words: dict[str, str]
    runs: list[RunDir]
    results: list[dict[str, Any]]
    steps: int | None

    @property
    def number(self) -> int:
        """Its number in the search, from 0."""
        return self.recorded.number

    @property
    def state(self) -> State:
        """Its state."""
        return self.recorded.state

    @property
    def is_judged(self) -> bool:
        """Whether it has a score at its end, and keeps to the constraints."""
        return self.state is State.FINISHED and self.recorded.is_feasible

    @property
    def step(self) -> int:
        """How many steps it was trained, as far as is known: those of all seeds together."""
        if self.state is State.FINISHED and self.steps is not None:
            return self.steps
        if len(self.runs) > 1:
            return (self.steps or 0) // len(self.runs) * len(self.recorded.curve)
        known = [int(steps) for result in self.results if isinstance(steps := result.get("steps"), int)]
        return max([*self.recorded.curve, *known, 0])

    @property
    def score(self) -> float | None:
        """The first objective at its end, or else where it stopped; None if there is none."""
        if self.recorded.values and self.state is State.FINISHED:
            return self.recorded.values[0]
        return self.recorded.curve[max(self.recorded.curve)] if self.recorded.curve else None


@dataclass(frozen=True)
class Searched:
    """What a search has found.

    Attributes:
        typed: what its report was asked for, such as "sweeps/search.yaml".
        study: the study that its runs belong to.
        recorded: what the journal says.
        metrics: the objectives.
        trials: all trials, by number.
        left_out: a sentence on each run that cannot be read.
        confirmed: "baseline" or the number of a trial -> what fresh seeds gave it, nan where one diverged.
    """

    typed: str
    study: str
    recorded: RecordedSearch
    metrics: list[Metric]
    trials: list[Tried]
    left_out: list[str]
    confirmed: dict[str, list[float]] = field(default_factory=dict)

    @property
    def objectives(self) -> list[str]:
        """The names of the objectives."""
        return self.recorded.recipe.get("objectives") or [f"objective {n}" for n in range(len(self.recorded.maximize))]

    @property
    def sign(self) -> int:
        """What makes the first objective lower for better."""
        return -1 if self.recorded.maximize[0] else 1

    @cached_property
    def keys(self) -> list[str]:
        """The keys that are searched."""
        return [*dict.fromkeys(key for trial in self.trials for key in trial.words)]

    @cached_property
    def own(self) -> list[Tried]:
        """The trials that are not the same run as another, and were not refused."""
        return [t for t in self.trials if not t.recorded.is_repeated and t.state is not State.FAILED]

    @cached_property
    def ranked(self) -> list[Tried]:
        """All trials: finished ones, the best first; then those that came furthest; then diverged and refused ones."""
        order = (State.FINISHED, None, State.DIVERGED, State.FAILED)

        def place(trial: Tried) -> tuple[float, ...]:
            group = order.index(trial.state if trial.state in order else None)
            score = inf if trial.score is None or not isfinite(trial.score) else self.sign * trial.score
            return (group, not trial.recorded.is_feasible, -trial.step if group else 0, score, trial.number)

        return sorted(self.trials, key=place)

    @cached_property
    def judged(self) -> list[Tried]:
        """The finished trials that keep to the constraints, the best first, each run once."""
        return [trial for trial in self.ranked if trial.is_judged and not trial.recorded.is_repeated]

    @property
    def name(self) -> str:
        """The first objective in words: "validation PPL"."""
        return name_metric(self.metrics[0])

    @property
    def seeds(self) -> list[int]:
        """The seeds whose mean a trial is; none if the seed of the config is used."""
        return [*self.recorded.recipe.get("seeds", [])]

    @cached_property
    def front(self) -> list[Tried]:
        """The finished trials that no other beats in all objectives, the best by the first one first."""
        signs = [-1 if one else 1 for one in self.recorded.maximize]
        losses = {
            trial.number: [sign * value for sign, value in zip(signs, trial.recorded.values, strict=True)]
            for trial in self.judged
        }

        def beats(one: list[float], other: list[float]) -> bool:
            return one != other and all(a <= b for a, b in zip(one, other, strict=True))

        return [t for t in self.judged if not any(beats(other, losses[t.number]) for other in losses.values())]

    @property
    def confirmation(self) -> tuple[list[Confirmed], Confirmed | None]:
        """The trials that are confirmed, and the baseline beside them."""
        places = {str(trial.number): place for place, trial in enumerate(self.judged)}
        best = [_confirmed(f"trial {n}", self.confirmed[n], places[n]) for n in self.confirmed if n in places]
        baseline = self.confirmed.get("baseline")
        return best, None if baseline is None else _confirmed("baseline", baseline)

    @property
    def selection(self) -> Selection:
        """What the best trials were chosen from; with the spread of a seed where trials have several."""
        scores = [trial.recorded.values[0] for trial in self.judged]
        groups = [[*trial.recorded.curve.values()] for trial in self.judged] if len(self.seeds) > 1 else []
        spread = pooled([Scores(self.name, group) for group in groups])
        worse = sum(trial.state in (State.PAUSED, State.PRUNED, State.DIVERGED) for trial in self.own)
        return Selection(scores, worse, self.metrics[0], self.sign < 0, max(1, len(self.seeds)), spread)

    def command(self, trial: Tried) -> str:
        """Return the command that trains a trial to its end."""
        words = [*self.recorded.recipe.get("fixed", []), *trial.recorded.overrides]
        return command_of([[*words, f"seed={seed}"] for seed in self.seeds] or [words])


def read_search(journal: Path, name: str, typed: str = "") -> Searched:
    """Read what the search `name` in a journal has found; the runs lie beside the journal's folder.

    Raises:
        UserError: there is no such search, or the journal is damaged.
    """
    recorded_there = {search.name: search for search in read_journal(journal)}
    if name not in recorded_there:
        there = f"it has {', '.join(recorded_there)}" if recorded_there else "it is empty"
        raise UserError(f"{journal} has no search {name}: {there}")
    recorded, folder = recorded_there[name], journal.absolute().parent
    runs_dir, study = folder.parent, folder.name
    left_out: list[str] = []
    trials = [_read_trial(trial, runs_dir, left_out) for trial in recorded.trials]
    confirmed = _read_confirmation(recorded, runs_dir, left_out)
    found = Searched(typed or str(journal), study, recorded, [], trials, left_out, confirmed)
    return replace(found, metrics=[find_metric(objective, study) for objective in found.objectives])


def _read_confirmation(recorded: RecordedSearch, runs_dir: Path, left_out: list[str]) -> dict[str, list[float]]:
    """Return what fresh seeds gave the baseline and the trials that are confirmed, nan for a run that diverged."""
    name = [*recorded.recipe.get("objectives", []), ""][0]
    found: dict[str, list[float]] = {}
    for one, paths in recorded.confirmed.items():
        scores = found.setdefault(one, [])
        for run in (RunDir(runs_dir / path) for path in paths):
            with leaving_out(run.path, left_out):
                result = run.result() if run.finished else {}
                if divergence(result):
                    left_out.append(f"Left out: {run.path}, which diverged, of what confirms.")
                    scores.append(nan)
                elif (value := read_value(run, result, name)[0] if result else None) is not None:
                    of_curve = recorded.best_of_curve
                    best = best_of_curve(run, name, value, maximize=recorded.maximize[0]) if of_curve else value
                    scores.append(best)
    return found


def _confirmed(name: str, found: Sequence[float], place: int | None = None) -> Confirmed:
    scores = [score for score in found if not isnan(score)]
    return Confirmed(name, scores, place, len(found) - len(scores))


def _read_trial(trial: RecordedTrial, runs_dir: Path, left_out: list[str]) -> Tried:
    words = dict(map(split_override, trial.overrides))
    runs = [RunDir(runs_dir / path) for path in trial.notes.get("runs", [])]
    results: list[dict[str, Any]] = []
    steps = None
    for run in runs:
        with leaving_out(run.path, left_out):
            if run.finished:
                results.append(run.result())
    if runs and runs[0].config_file.is_file():
        with leaving_out(runs[0].path, left_out):
            steps = len(runs) * _max_steps(runs[0])
    return Tried(trial, words, runs, results, steps)


def _max_steps(run: RunDir) -> int:
    """Read the steps of a run's budget, from the text of its config where it can be seen: a config takes 1 ms to parse.

    Raises:
        UserError: the config is incomplete.
        TypeError: it has no such number.
    """
    seen = _MAX_STEPS.search(run.config_file.read_text(encoding="utf-8"))
    return int(seen[1]) if seen else int(value_at(run.config(), "budget.max_steps"))


def rungs(found: Searched) -> dict[int, RankCorrelation]:
    """Correlate the ranks at each rung with those at the end, among the trials that have both: step -> correlation."""
    steps = sorted({step for trial in found.own for step in trial.recorded.notes.get("rungs", [])})
    ends = {str(trial.number): trial.recorded.values[0] for trial in found.judged}
    curves = {str(trial.number): trial.recorded.curve for trial in found.judged}
    return {step: spearman({name: curve.get(step) for name, curve in curves.items()}, ends) for step in steps}


def frame(found: Searched) -> "DataFrame":
    """Return a pandas DataFrame with a row a trial, by number.

    Its columns: trial; state; step, to which it was trained, and steps, of its full budget; curve, the score at that
    step, which is not one at the end; each objective, at the end; each key that is searched; same_as, the trial that is
    the same run; error, why it was refused; path, of its first run.
    """
    import pandas as pd

    objectives = found.objectives
    rows = []
    for trial in found.trials:
        ends = trial.recorded.values if trial.state in (State.FINISHED, State.DIVERGED) else []
        rows.append(
            {"trial": trial.number, "state": str(trial.state), "step": trial.step, "steps": trial.steps}
            | {"curve": None if ends else trial.score}
            | dict.fromkeys(objectives)
            | dict(zip(objectives, ends, strict=False))
            | {key: _number(trial.words.get(key)) for key in found.keys}
            | {"same_as": trial.recorded.notes.get("same_as"), "error": trial.recorded.notes.get("error")}
            | {"path": str(trial.runs[0].path) if trial.runs else None}
        )
    return pd.DataFrame(rows)


def _number(word: str | None) -> float | int | str | None:
    """Return what an override's value is in a frame: a number if it is one."""
    if word is None or not NUMBER.fullmatch(word):
        return word
    return int(word) if word.lstrip("+-").isdecimal() else float(word)


def find_metric(name: str, study: str) -> Metric:
    """Return what is known of the metric `name`: how it is shown, which way it is better ("" if unknown), over what."""
    flat_name = flat(name)
    for metric in (*metrics_of(study).values(), *default_metrics(None).values(), _LOSS):
        if f"_{flat_name}".endswith(f"_{metric.column}"):
            text = flat_name.removesuffix(f"_{metric.column}")
            return replace(metric, key=flat_name, label=metric.label if text in _TEXTS else name)
    return Metric(name, flat_name, name, better="", digits=3)


def text_of(metric: Metric) -> str:
    """Return which text the metric is of: "validation", "test", or "" for neither."""
    return _TEXTS.get(metric.key.partition("_")[0], "")


def name_metric(metric: Metric) -> str:
    """Name the metric with its text: "validation PPL"."""
    return f"{text_of(metric)} {metric.label}".strip()


def command_of(runs: Sequence[Sequence[str]]) -> str:
    """Return the command that trains runs which differ only in their seeds."""
    words = [word for word in runs[0] if not override_key(word).startswith(("seed", "hydra"))]
    seeds = ",".join(value for run in runs for key, value in map(split_override, run) if key == "seed")
    return shlex.join(["etude", "train", *["-m"] * (len(runs) > 1), *words, *[f"seed={seeds}"] * bool(seeds)])
