"""A world in which training is a function, for tests of searches: no run takes more than a millisecond."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import optuna
import yaml
from optuna.distributions import FloatDistribution, IntDistribution

from etude.errors import UserError
from etude.search.engine import Engine
from etude.search.hyperband import Curve
from etude.search.search import Dimension, Objective, Search
from etude.store.run_dir import RunDir
from etude.store.run_state import State, read_stop

STEPS, EVERY = 90, 10
SECONDS = 4.0  # for a step
SPACE = {
    "x": Dimension(FloatDistribution(0.1, 10.0, log=True), "log 0.1 to 10"),
    "k": Dimension(IntDistribution(1, 5), "1 to 5"),
}


def tpe(seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=4)


def search(**changes: Any) -> Search:
    plain = Search("first", "my.yaml", ("fixed=1",), SPACE, (Objective("valid.loss"),), 12, tpe, seed=7, n_jobs=1)
    return replace(plain, **changes)


def loss(words: dict[str, str]) -> float:
    return float(log(float(words.get("x", 1))) ** 2 + int(words.get("k", 3)))


class World:
    """Runs whose training is a function: after step s the loss is a known multiple of the last one."""

    def __init__(
        self, folder: Path, score: Callable[[dict[str, str]], float] = loss, *, timed: bool = True, every: int = EVERY
    ) -> None:
        self.runs_dir, self.score, self.every, self.trained = folder / "runs", score, every, 0
        self.timed = timed  # whether runs record how long they train

    def freeze(self, jobs: Sequence[Sequence[str]]) -> list[RunDir]:
        return [self._freeze(dict(word.split("=", 1) for word in job)) for job in jobs]

    def _freeze(self, words: dict[str, str]) -> RunDir:
        if float(words.get("x", 1)) > 9.9:
            raise UserError("x is too large")
        name = f"seed{words.get('seed', 1)}-{abs(hash(tuple(sorted(words.items())))):x}"
        run = RunDir(self.runs_dir / "single" / "base" / name)
        run.path.mkdir(parents=True, exist_ok=True)
        run.link_training(name)
        run.own_training.path.mkdir(parents=True, exist_ok=True)
        budget = {"max_steps": STEPS, "val_every": self.every, "warmup_steps": 5}
        run.config_file.write_text(yaml.dump({"seed": 1, "budget": budget, "words": words, "choices": {}}))
        return run

    def train(self, run: RunDir) -> State:
        """Train a run from where it is to where it is to stop."""
        words = run.config()["words"]
        stop, start = read_stop(run), len(run.metrics_file.read_text().split()) - 1 if run.metrics_file.is_file() else 0
        end = min(STEPS, stop.step if stop else STEPS)
        final = self.score(words)
        with run.own_training.metrics_file.open("a") as file:
            rows = csv.writer(file)
            if not start:
                rows.writerow(["step", "valid_loss", *["seconds"] * self.timed])
            for step in range((start + 1) * self.every, end + 1, self.every):
                rows.writerow([step, final + (STEPS - step) / 10, *[step * SECONDS] * self.timed])
                self.trained += self.every
        if stop:
            return stop.state
        run.copy_training()
        seconds = {"seconds": STEPS * SECONDS} if self.timed else {}
        run.write_result({"valid": {"loss": final}, "test": {"loss": final}, "steps": STEPS} | seconds)
        return State.FINISHED


def carry_out(what: Search, world: World, *, blows: int = 10**9, at_once: int = 1) -> Engine:
    """Carry out a search, at most `blows` runs of it."""
    engine = Engine(what, world.runs_dir, "single", world.freeze)
    while blows and (runs := engine.more(at_once)):
        for run, _ in runs[:blows]:
            state = world.train(run)
            engine.watch()
            engine.ended(run, state)
            blows -= 1
    return engine


def table(engine: Engine) -> list[tuple[Any, ...]]:
    return [(t.params, t.state, t.values, t.intermediate_values) for t in engine.journal.trials()]


class Above:
    """Stops a trial whose last value is above a bound."""

    def __init__(self, bound: float) -> None:
        self.bound = bound

    def stops(self, curve: Curve, others: Sequence[Curve], *, maximize: bool) -> bool:
        return curve[max(curve)] > self.bound
