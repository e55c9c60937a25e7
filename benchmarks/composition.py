"""How long it takes to know what many runs are: to freeze a sweep, to recognise a finished one, to plan a study.

    python benchmarks/composition.py [--seeds 25] [--times 3]

The sweep is the twenty arms of table3 with as many seeds, frozen by one call, and one seed of it run by run. Seconds of
processor time; of a plan, which has a second process, by the clock too.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from etude.config.compose import compose
from etude.config.freeze import freeze, freeze_all
from etude.store.run_dir import RunDir
from etude.study.study import load_study

Jobs = list[list[str]]


def jobs(runs_dir: str, seeds: int) -> Jobs:
    names = [(arm, seed) for arm in load_study("table3").arms for seed in range(1, seeds + 1)]
    return [[f"experiment=table3/{arm}", f"seed={seed}", f"runs_dir={runs_dir}"] for arm, seed in names]


def timed(what: str, freezing: Callable[[Jobs], Sequence[RunDir]], asked: Jobs) -> Sequence[RunDir]:
    began = time.process_time()
    runs = freezing(asked)
    taken = time.process_time() - began
    print(f"{len(runs)} runs {what}: {taken:.2f} s, {1000 * taken / len(runs):.1f} ms each", flush=True)
    return runs


def plan(study: str) -> None:
    before = os.times()
    subprocess.run([sys.executable, "-m", "etude", "plan", study], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    processor = sum(getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system"))
    print(f"etude plan {study}: {after.elapsed - before.elapsed:.2f} s by the clock, {processor:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        timed("frozen one by one", lambda asked: [freeze(compose(job)) for job in asked], jobs(folder, 1))
        sweep = jobs(folder, options.seeds)
        for run in timed("frozen at once", lambda asked: freeze_all(asked, compose), sweep):
            run.write_result({"finished": True})
        timed("recognised as finished", lambda asked: freeze_all(asked, compose), sweep)
    for study in ("table3", "axes"):
        for _ in range(options.times):
            plan(study)


if __name__ == "__main__":
    main()
