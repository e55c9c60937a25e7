"""Does promotion find what training every trial to its end would find, for two fifths of the steps?

    python benchmarks/promotion.py FOLDER --repeat 1 2 3

A search over learning rate, warm-up and dropout of Table 3's base at pocket scale: 60 random trials, of which one in
three is promoted at each rung. Then every trial that was paused or pruned is typed by hand, and so goes on to its end.
The best trial of the search and the best of all 60 are trained on three fresh seeds each. A repeat has a sampler's seed
and a training seed of its own, and takes an hour on two cores; what is there already is not computed again.

Written before the first repeat: in each, at most 40 % of the steps that 60 trials have in all, and a regret (the mean
test loss of the search's best minus that of the best of all, on the fresh seeds) of at most 0.02 nats, 0.01 in the mean
of the repeats. The rungs were chosen on the curves of 26 trials with other seeds, replayed in many orders: 0.1, 0.5, 1
then take 0.33 of the steps and miss the best in one of 25.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

STEPS, TRIALS = 4000, 60
FRESH = 3  # seeds on which the best are judged
FIXED = [
    "experiment=table3/base",
    "logger=none",
    "data.test_pairs=2000",
    "budget.bleu_sentences=10",
    "budget.val_every=200",
]
SEARCH = """program: etude
method: random
metric: {name: valid.loss, goal: minimize}
run_cap: 60
search: {manner: promote, rungs: [0.1, 0.5, 1], eta: 3}
parameters:
  budget.lr_factor: {distribution: log_uniform_values, min: 0.2, max: 3.0}
  budget.warmup_steps: {distribution: int_uniform, min: 50, max: 400}
  model.dropout: {distribution: uniform, min: 0.0, max: 0.3}
command: ["${env}", etude, train, "${args_no_hyphens}"]
"""


@dataclass
class Repeat:
    """One repeat in a folder of its own."""

    folder: Path
    number: int
    workers: int

    def searched(self) -> list[FrozenTrial]:
        """Carry out the search, and return its trials."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "search.yaml").write_text(SEARCH)
        own = [f"seed={self.number}", f"search_seed={self.number}", f"hydra.launcher.workers={self.workers}"]
        self.type("sweep", "search.yaml", *FIXED, *own)
        [journal] = self.folder.glob("runs/*/*.journal")
        return optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(str(journal)))).trials

    def train(self, jobs: Sequence[tuple[FrozenTrial, int]]) -> None:
        """Train trials with these seeds to their end, so many at once as there are workers."""
        with ThreadPoolExecutor(self.workers) as pool:
            commands = [["train", *FIXED, f"seed={seed}", *trial.user_attrs["overrides"]] for trial, seed in jobs]
            list(pool.map(lambda command: self.type(*command), commands))

    def losses(self, trial: FrozenTrial) -> dict[int, dict[str, float]]:
        """Return the losses of a trial by the seeds that it was trained with."""
        found = {}
        for result in self.folder.glob("runs/table3/base/*/result.json"):
            typed = (result.parent / "overrides.txt").read_text().split()
            if {*trial.user_attrs["overrides"]} <= {*typed}:
                seed = int(result.parent.name.removeprefix("seed").partition("-")[0])
                scores = json.loads(result.read_text())
                found[seed] = {text: math.log(scores[text]["perplexity"]) for text in ("valid", "test")}
        return found

    def type(self, *words: str) -> None:
        """Type a command of étude in the folder."""
        command = [sys.executable, "-m", "etude", *words]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "ETUDE_CACHE": str(self.folder.absolute() / "cache")}
        with (self.folder / "log.txt").open("ab") as log:
            subprocess.run(command, cwd=self.folder, env=environment, stdout=log, stderr=log, check=True)

    def judge(self) -> tuple[float, float]:
        """Return the share of the steps and the regret."""
        trials = self.searched()
        steps = [STEPS if one.state is TrialState.COMPLETE else max(one.intermediate_values) for one in trials]
        share = sum(steps) / (STEPS * TRIALS)
        print(f"repeat {self.number}: {share:.3f} of the steps", flush=True)
        self.train([(one, self.number) for one in trials if self.number not in self.losses(one)])
        ends = {one.number: self.losses(one)[self.number]["valid"] for one in trials}
        chosen = min((one for one in trials if one.state is TrialState.COMPLETE), key=lambda one: one.values[0])
        best = trials[min(ends, key=lambda number: ends[number])]
        fresh = [100 * self.number + extra for extra in range(1, FRESH + 1)]
        self.train([(one, seed) for one in {chosen.number: chosen, best.number: best}.values() for seed in fresh])
        scores = [fmean(self.losses(one)[seed]["test"] for seed in fresh) for one in (chosen, best)]
        regret = scores[0] - scores[1]
        print(
            f"repeat {self.number}: the search's best, trial {chosen.number}, ended at {ends[chosen.number]:.4f}; "
            f"of all, trial {best.number}, at {ends[best.number]:.4f}; test loss on fresh seeds "
            f"{scores[0]:.4f} and {scores[1]:.4f}: regret {regret:.4f} nats",
            flush=True,
        )
        return share, regret


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("folder", type=Path)
    words.add_argument("--repeat", type=int, nargs="+", default=[1, 2, 3])
    words.add_argument("--workers", type=int, default=2)
    given = words.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = [Repeat(given.folder / f"repeat{one}", one, given.workers).judge() for one in given.repeat]
    mean = fmean(regret for _, regret in found)
    print(f"steps at most {max(share for share, _ in found):.3f}; regret {mean:.4f} nats in the mean")
    return 0 if mean <= 0.01 and all(share <= 0.4 and regret <= 0.02 for share, regret in found) else 1


if __name__ == "__main__":
    sys.exit(main())
