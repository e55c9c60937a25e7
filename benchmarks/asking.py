"""How long a search thinks: a question to the sampler, and a validation read, judged and written, at 500 trials.

    OMP_NUM_THREADS=1 python benchmarks/asking.py

Each trial has nine validations. Milliseconds: the median and the longest of twenty, in a journal in a temporary folder.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import optuna
from optuna.trial import TrialState, create_trial

from etude.search.ask import ask
from etude.search.distributions import read_distribution
from etude.search.journal import Journal
from etude.search.search import Objective, Search

TRIALS, VALIDATIONS, TURNS = 500, 9, 20
SPACE: dict[str, dict[str, Any]] = {
    "budget.lr_factor": {"distribution": "log_uniform_values", "min": 0.2, "max": 3.0},
    "budget.warmup_steps": {"min": 50, "max": 400},
    "model.dropout": {"min": 0.0, "max": 0.3},
    "model.heads": {"values": [1, 2, 4, 8]},
}


def measure(what: str, do: Callable[[int], object]) -> None:
    seconds = []
    for turn in range(TURNS):
        start = time.perf_counter()
        do(turn)
        seconds.append(1000 * (time.perf_counter() - start))
    print(f"{what}: {median(seconds):.1f} ms, {max(seconds):.1f} ms at most")


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {key: read_distribution(parameter, key).dimension() for key, parameter in SPACE.items()}
    what = Search(
        *("asking", "asking.yaml", (), space, (Objective("valid.loss"),), TRIALS),
        sampler=lambda seed: optuna.samplers.TPESampler(seed=seed),
    )
    random, drawn = Random(1), {key: one.distribution for key, one in space.items()}
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "asking.journal", "asking", [False], {})
        draws = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
        for number in range(TRIALS):
            loss, params = random.uniform(1, 5), draws.ask(drawn).params
            curve = {step: loss + VALIDATIONS - step for step in range(1, VALIDATIONS + 1)}
            ended = {"state": TrialState.COMPLETE, "value": loss} if number else {"state": TrialState.RUNNING}
            journal.add(
                create_trial(params=params, distributions=drawn, intermediate_values=curve if number else {}, **ended),
                {},
            )
        running, rule = journal.trials()[0], optuna.pruners.MedianPruner()

        def validate(turn: int) -> None:
            with journal.locked():
                journal.report(journal.trials()[0], {turn + 1: 3.0})
                rule.prune(journal.study, journal.trials()[running.number])

        measure("a question", lambda turn: ask(what, journal.trials(), journal.attributes, [running.number]))
        measure("a validation", validate)


if __name__ == "__main__":
    main()
