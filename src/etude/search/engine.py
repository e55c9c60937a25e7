"""Carry out a search: decide what is trained next from the journal, read its validations, and write what came of it.

Every decision is a function of the journal, made under its lock, and is in the journal before it is acted on. So a
search that is killed goes on where it was, and several processes, on one machine or more, may share one.

A trial is a run, or one for each of several seeds. Optuna knows it as running until it is finished, pruned or refused;
whether it is trained or paused at a rung follows from the validations that are there.
"""

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, isnan
from pathlib import Path
from statistics import fmean
from typing import Any

import optuna
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial, TrialState

from etude.errors import UserError, did_you_mean
from etude.search.ask import ask
from etude.search.journal import Journal
from etude.search.promotion import Climber, out_of_reach, promote, promote_last, reached
from etude.search.score import best_of_curve, is_in_curves, read_curve, read_seconds, read_value
from etude.search.search import Objective, Search
from etude.store.cleaning import free_checkpoints
from etude.store.divergence import divergence
from etude.store.overrides import distinguishing_overrides
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, write_stop
from etude.study.arms import override_key
from etude.study.study import number_at

logger = logging.getLogger(__name__)

Freeze = Callable[[Sequence[Sequence[str]]], list[RunDir]]

_CONSTRAINT = "constraints:"  # how Optuna's name of one begins
_REFUSED = 10  # trials in a row that may be refused before the search ends


class Engine:
    """Decides what a search trains.

    Args:
        search: what is searched for.
        runs_dir: the folder of runs.
        study: the study that the trials are runs of, in whose folder the journal lies.
        freeze: freezes the runs of overrides.

    Raises:
        UserError: as `Journal`.
    """

    def __init__(self, search: Search, runs_dir: Path, study: str, freeze: Freeze) -> None:
        self.search, self.runs_dir, self.freeze = search, runs_dir.absolute(), freeze
        maximize = [one.maximize for one in search.objectives]
        self.journal = Journal(runs_dir / study / f"{search.name}.journal", search.name, maximize, _recipe(search))
        if search.best_of_curve and "best_of_curve" not in self.journal.study.user_attrs:
            self.journal.study.set_user_attr("best_of_curve", value=True)
        held = len(self.journal.trials()) if search.further else 0
        self.n_trials = search.n_trials + held
        if held:
            logger.info(
                "%s: %s holds %d trials, and now come %d further ones",
                *(search.source, self.journal.path),
                *(held, search.n_trials),
            )
        # the runs that were handed out, with the numbers of their trials and the rungs that these were to come to
        self._going: dict[RunDir, tuple[int, int]] = {}
        self._failed: set[int] = set()  # trials whose process failed, which another start of the search tries again
        self._seen: dict[RunDir, int] = {}  # the size of a metrics file when it was last read
        with self.journal.locked():
            for trial in self.journal.trials():
                self._take_up(trial)

    def _take_up(self, trial: FrozenTrial) -> None:
        """Decide what an earlier process wrote the reason for in the journal, and was killed before it decided."""
        if trial.state.is_finished():
            self._tell_the_same(trial)
        elif self.search.stopping and trial.intermediate_values and self._is_to_be_stopped(trial):
            last = max(trial.intermediate_values)
            run = trial.user_attrs["runs"][last if self.search.seeds else 0]
            self._prune(trial, RunDir(self.runs_dir / run), last)

    def more(self, room: int) -> list[tuple[RunDir, str]]:
        """Return up to `room` runs to be trained now, each with its name for people.

        Raises:
            UserError: the search cannot go on.
        """
        found: list[tuple[RunDir, str]] = []
        with self.journal.locked():
            while len(found) < room and (trial := self._next()):
                if run := self._start(trial):
                    found.append((run, self._name(trial)))
        return found

    def watch(self) -> None:
        """Read the new validations of the runs that are being trained, and stop those that are not worth it."""
        for run, (number, _) in [*self._going.items()]:
            size = run.metrics_file.stat().st_size if run.metrics_file.is_file() else 0
            if size != self._seen.get(run):
                self._seen[run] = size
                with self.journal.locked():
                    self._read_curve(self._trial(number), run)

    def ended(self, run: RunDir, state: State, reason: str = "") -> None:
        """Take note of how a run that was handed out has ended.

        Raises:
            UserError: the run has no such number as the search looks for.
        """
        if run not in self._going:
            return
        number, to = self._going.pop(run)
        with self.journal.locked():
            trial = self._trial(number)
            if not trial.state.is_finished():
                self._read_curve(trial, run)
                trial = self._trial(number)
            if trial.state.is_finished():
                if trial.state is TrialState.PRUNED and not run.finished:
                    free_checkpoints(run)
            elif run.finished:
                self._finish(trial, run)
            elif state is not State.PAUSED or not (self._is_paused(trial) or trial.user_attrs.get("to", 0) > to):
                self._failed.add(number)
                logger.warning("%s: %s", self._name(trial), reason or f"its run is {state}")

    def figures(self) -> dict[RunDir, dict[str, str]]:
        """Return what the live table shows of each run: the rung that it is trained to, and its best value so far."""
        with self.journal.locked():
            trials = self.journal.trials()
        found = {}
        for trial in trials:
            places = [*trial.intermediate_values.values()]
            for place, path in enumerate(trial.user_attrs.get("runs", [])):
                values = places[place : place + 1] if self.search.seeds else [*places, *(trial.values or [])[:1]]
                best = min((self._sign * value for value in values if isfinite(value)), default=None)
                shown = {} if best is None else {"best": f"{self._sign * best:.5g}"}
                if "rungs" in trial.user_attrs:
                    top = len(trial.user_attrs["rungs"]) + 1
                    to = top if trial.state is TrialState.COMPLETE else trial.user_attrs["to"] + 1
                    shown["rung"] = f"{to}/{top}"
                found[RunDir(self.runs_dir / path)] = shown
        return found

    # The journal

    def _trial(self, number: int) -> FrozenTrial:
        return self.journal.trials()[number]

    def _next(self) -> FrozenTrial | None:
        """Return the trial that is to be trained now; None if there is none, for now or at all."""
        self._prune_out_of_reach()
        trials = self.journal.trials()
        going = {number for number, _ in self._going.values()} | self._failed
        for trial in trials:  # begun by an earlier process, or by another that is at work
            if self._is_pending(trial) and trial.number not in going:
                return trial
        if chosen := self._promote(promote(self._climbers(trials), self._eta)):
            return chosen
        while self._is_asking(trials):
            if asked := self._ask(trials):
                return asked
            trials = self.journal.trials()
        if self._going:
            return None
        top = len(self.search.promotion.rungs) - 1 if self.search.promotion else 0
        return self._promote(promote_last(self._climbers(trials), top))

    def _is_pending(self, trial: FrozenTrial) -> bool:
        """Return whether a trial is trained, or is to be."""
        return trial.state is TrialState.RUNNING and "same_as" not in trial.user_attrs and not self._is_paused(trial)

    def _is_paused(self, trial: FrozenTrial) -> bool:
        return self.search.promotion is not None and self._climber(trial).paused

    def _is_asking(self, trials: Sequence[FrozenTrial]) -> bool:
        """Return whether the search wants a further trial.

        Raises:
            UserError: too many of the last ones were refused.
        """
        if len(trials) >= self.n_trials or self._has_reached_target(trials) or self._has_taken_its_hours(trials):
            return False
        failed = [trial.state is TrialState.FAIL or trial.number in self._failed for trial in trials]
        rate, of = self.search.max_failure_rate, self.search.n_jobs or 1
        if (all(failed[-_REFUSED:]) and len(failed) >= _REFUSED) or sum(failed[-of:]) > rate * of:
            why = trials[-1].user_attrs.get("error", "its run failed")
            raise UserError(
                f"{self.search.source}: too many of the last trials failed, trial {trials[-1].number}: {why}"
            )
        return True

    def _has_reached_target(self, trials: Sequence[FrozenTrial]) -> bool:
        target, sign = self.search.target, self._sign
        values = (trial.values[0] for trial in trials if trial.state is TrialState.COMPLETE)
        return target is not None and any(sign * value <= sign * target for value in values)

    def _has_taken_its_hours(self, trials: Sequence[FrozenTrial]) -> bool:
        if self.search.hours is None:
            return False
        runs = {run for trial in trials for run in trial.user_attrs.get("runs", [])}
        return sum(read_seconds(RunDir(self.runs_dir / run)) for run in runs) >= 3600 * self.search.hours

    def _ask(self, trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
        """Ask for a trial and write it to the journal; None if its config is refused."""
        running = [trial.number for trial in trials if self._is_pending(trial) and trial.number not in self._failed]
        trial, words, attributes = ask(self.search, trials, self.journal.attributes, running)
        overrides = [*self.search.fixed, *words]
        notes: dict[str, Any] = {"overrides": words}
        try:
            runs = self._freeze(overrides)
            notes |= self._rungs(runs[0].config()) if self.search.promotion else {}
            notes["runs"] = [str(run.path.relative_to(self.runs_dir)) for run in runs]
        except UserError as refused:
            if len(trials) == 0:  # nothing has come of the search, and every other trial may be refused as well
                raise
            notes["error"] = str(refused)
            logger.warning("trial %d is refused: %s", len(trials), refused)
            trial.state = TrialState.FAIL
        same = (one.number for one in trials if notes.get("runs") and one.user_attrs.get("runs") == notes["runs"])
        if (other := next(same, None)) is not None:
            notes["same_as"] = other
        trial.user_attrs = notes
        self.journal.add(trial, attributes)
        trial = self._trial(len(trials))
        if other is not None:
            self._tell_the_same(self._trial(other))
        return trial if self._is_pending(trial) else None

    def _freeze(self, overrides: Sequence[str]) -> list[RunDir]:
        seeds = self.search.seeds
        runs = self.freeze([[*overrides, f"seed={seed}"] for seed in seeds] if seeds else [overrides])
        return [RunDir(run.path.absolute()) for run in runs]

    def _rungs(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the steps of the rungs of a trial, each that of a validation.

        Raises:
            UserError: the rungs do not fit the budget.
        """
        if not is_in_curves(name := self.search.objectives[0].name, config["budget"].get("val_metrics") or ()):
            raise UserError(
                f"{self.search.source}: {name} is known only when a run has ended: promote by valid.loss or "
                "valid.perplexity, or by valid.bleu with budget.val_metrics=[bleu]"
            )
        steps, every = config["budget"]["max_steps"], config["budget"]["val_every"]
        shares = self.search.promotion.rungs[:-1] if self.search.promotion else ()
        rungs = [max(every, round(share * steps / every) * every) for share in shares]
        warmup = max(config["budget"]["warmup_steps"], self._longest_warmup())
        where = f"{self.search.source}: rungs at steps {', '.join(map(str, rungs))} of {steps}"
        if sorted({*rungs, steps}) != [*rungs, steps]:
            raise UserError(
                f"{where}: there is a validation every {every} steps: take fewer rungs, or validate more often"
            )
        if rungs and rungs[0] < warmup:
            raise UserError(
                f"{where}: the first comes before the end of a warm-up of {warmup:g} steps: nothing can be judged there"
            )
        return {"rungs": rungs, "to": 0}

    def _longest_warmup(self) -> float:
        of_warmup = (one for key, one in self.search.space.items() if override_key(key) == "budget.warmup_steps")
        return max((one.largest() for one in of_warmup), default=0)

    def _start(self, trial: FrozenTrial) -> RunDir | None:
        """Return the next run of a trial, told where to stop; None if it is finished already, which is noted."""
        words = [*self.search.fixed, *trial.user_attrs["overrides"]]
        runs = [RunDir(self.runs_dir / path) for path in trial.user_attrs["runs"]]
        run = runs[0]
        if self.search.seeds:  # with none left, the search was killed before it noted their mean: the first does so
            run = next((one for place, one in enumerate(runs) if place not in trial.intermediate_values), run)
        if not run.config_file.is_file():  # it was deleted since
            run = dict(zip(runs, self._freeze(words), strict=True))[run]
        rungs, to = trial.user_attrs.get("rungs", []), trial.user_attrs.get("to", 0)
        self._going[run] = trial.number, to
        if run.finished:
            self.ended(run, State.SKIPPED)
            return None
        write_stop(run, Stop(rungs[to], State.PAUSED) if to < len(rungs) else None)
        return run

    def _name(self, trial: FrozenTrial) -> str:
        return " ".join([f"trial {trial.number}", *trial.user_attrs.get("overrides", [])])

    # What the runs show

    def _read_curve(self, trial: FrozenTrial, run: RunDir) -> None:
        """Write the new validations of a run to the journal, and prune its trial if they are not good enough."""
        if self.search.seeds or trial.state.is_finished():  # of several seeds, each run is a step
            return
        known = trial.intermediate_values
        for step, value in read_curve(run, self.search.objectives[0].name).items():
            if step not in known:
                self.journal.report(trial, {step: value if isfinite(value) else self._sign * inf})
                if self.search.stopping and self._is_to_be_stopped(self._trial(trial.number)):
                    self._prune(self._trial(trial.number), run, step)
                    return

    def _is_to_be_stopped(self, trial: FrozenTrial) -> bool:
        rule = self.search.stopping
        if isinstance(rule, BasePruner):
            with warnings.catch_warnings(action="ignore"):
                return rule.prune(self.journal.study, trial)
        others = [one.intermediate_values for one in self.journal.trials() if one.number != trial.number]
        return rule is not None and rule.stops(trial.intermediate_values, others, maximize=self._sign < 0)

    def _prune(self, trial: FrozenTrial, run: RunDir, step: int) -> None:
        last = trial.intermediate_values[max(trial.intermediate_values)]
        self.journal.tell(trial, TrialState.PRUNED, [last])
        self._tell_the_same(self._trial(trial.number))
        if not run.finished:
            write_stop(run, Stop(step, State.PRUNED))

    def _finish(self, trial: FrozenTrial, run: RunDir) -> None:
        """Write the values of a finished run; those of a run that diverged are the worst there are."""
        result = run.result()
        signs = [-1 if one.maximize else 1 for one in self.search.objectives]
        values = [sign * inf for sign in signs]
        if not divergence(result):
            values = [self._value(run, result, one) for one in self.search.objectives]
            values = [sign * inf if isnan(value) else value for sign, value in zip(signs, values, strict=True)]
        for key, most in self.search.constraints.items():
            number, known = _read(run, result, key)
            if number is None and not divergence(result) and not self._has_constraint(key):
                raise UserError(
                    f"{self.search.source}: no run has the number {key}, which constraints bound; "
                    f"{did_you_mean(key, known)}: with that, the same command goes on"
                )
            excess = inf if number is None or isnan(number) else number - most
            excess = max(excess, trial.system_attrs.get(f"{_CONSTRAINT}{key}", -inf))  # of all its seeds
            optuna.Trial(self.journal.study, trial._trial_id).set_constraint(key, excess)
        if self.search.seeds:
            place = trial.user_attrs["runs"].index(str(run.path.relative_to(self.runs_dir)))
            if place not in trial.intermediate_values:  # else another process has noted it
                self.journal.report(trial, {place: values[0]})
                trial = self._trial(trial.number)
            done = [*trial.intermediate_values.values()]
            if self.search.stopping and self._is_to_be_stopped(trial):
                self._prune(trial, run, 0)
                return
            if len(done) < len(self.search.seeds):
                return
            values = [fmean(done)]
        self.journal.tell(trial, TrialState.COMPLETE, values)
        self._tell_the_same(self._trial(trial.number))

    def _value(self, run: RunDir, result: Mapping[str, Any], objective: Objective) -> float:
        value, known = _read(run, result, objective.name)
        if value is None:
            raise UserError(
                f"{self.search.source}: no run has the number {objective.name}, which the search looks for; "
                f"{did_you_mean(objective.name, known)}"
            )
        if not self.search.best_of_curve:
            return value
        return best_of_curve(run, objective.name, value, maximize=objective.maximize)

    def _has_constraint(self, key: str) -> bool:
        """Return whether some trial has a number that a constraint bounds, so that it is no misspelt one."""
        return any(trial.system_attrs.get(f"{_CONSTRAINT}{key}", inf) < inf for trial in self.journal.trials())

    def _tell_the_same(self, trial: FrozenTrial) -> None:
        """Tell of the trials that are the same run as a finished one what is known of that."""
        if trial.state.is_finished():
            for other in self.journal.trials():
                if other.user_attrs.get("same_as") == trial.number and not other.state.is_finished():
                    self.journal.report(other, trial.intermediate_values)
                    for key, excess in trial.system_attrs.items():
                        if key.startswith(_CONSTRAINT):
                            again = optuna.Trial(self.journal.study, other._trial_id)
                            again.set_constraint(key.removeprefix(_CONSTRAINT), excess)
                    self.journal.tell(other, trial.state, trial.values)

    # Promotion

    @property
    def _sign(self) -> int:
        return -1 if self.search.objectives[0].maximize else 1

    @property
    def _eta(self) -> int:
        return self.search.promotion.eta if self.search.promotion else 1

    def _promote(self, climber: Climber | None) -> FrozenTrial | None:
        """Write that a trial is promoted."""
        if climber is None:
            return None
        self.journal.note(self._trial(climber.number), "to", climber.to + 1)
        return self._trial(climber.number)

    def _prune_out_of_reach(self) -> None:
        """Prune the paused trials that will never be promoted, and free their checkpoints."""
        trials = self.journal.trials()
        for lost in out_of_reach(self._climbers(trials), self._eta, self.n_trials):
            trial = trials[lost.number]
            run = RunDir(self.runs_dir / trial.user_attrs["runs"][0])
            self._prune(trial, run, trial.user_attrs["rungs"][lost.to])
            if not run.finished:
                free_checkpoints(run)

    def _climbers(self, trials: Sequence[FrozenTrial]) -> list[Climber]:
        """Return the trials on the rungs; one whose process has yet to end cannot go on now."""
        of_the_search = [trial for trial in trials if "to" in trial.user_attrs and "same_as" not in trial.user_attrs]
        going = {number for number, _ in self._going.values()}
        return [replace(one, ended=one.ended or one.number in going) for one in map(self._climber, of_the_search)]

    def _climber(self, trial: FrozenTrial) -> Climber:
        rungs, to = trial.user_attrs.get("rungs", []), trial.user_attrs.get("to", 0)
        values = [trial.intermediate_values[step] for step in reached(rungs, trial.intermediate_values)]
        # Another run may have trained it beyond the rung that it was to come to.
        values = [*values, trial.values[0]] if trial.state is TrialState.COMPLETE else values[: to + 1]
        return Climber(
            trial.number,
            [self._sign * value for value in values],
            to,
            ended=trial.state.is_finished() or trial.number in self._failed,
        )


def _read(run: RunDir, result: Mapping[str, Any], name: str) -> tuple[float | None, list[str]]:
    """Read a number of a finished run, or a quotient of two; also return the names that there are."""
    value, known = read_value(run, result, name)
    return number_at(result, name) if value is None else value, known


def _recipe(search: Search) -> dict[str, Any]:
    """Return what must stay the same as long as a search goes on, for reports to read as well."""
    settings = distinguishing_overrides(search.fixed)  # where a run logs to, say, is no matter
    named = [word for word in search.fixed if override_key(word) in ("experiment", "seed")]
    return {
        **{key: dimension.text for key, dimension in search.space.items()},
        "fixed": [*named, *settings],
        "seed": search.seed,
        "seeds": [*search.seeds],
        "objectives": [one.name for one in search.objectives],
        "rungs": [*search.promotion.rungs] if search.promotion else [],
        "eta": search.promotion.eta if search.promotion else None,
        "stopping": type(search.stopping).__name__ if search.stopping else None,
        "sampler": type(search.sampler(search.seed)).__name__,
    }
