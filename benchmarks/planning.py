"""What `etude plan` says of memory against what training takes, and how long it takes to say it.

    python benchmarks/planning.py [--steps 4] [--study axes]

Each model trains some steps in a process of its own; its peak is what the system counts, libraries included. The heap
settles after about four steps. With --study, every arm of one at small scale instead, with 4,000 tokens a batch.
"""

import argparse
import os
import resource
import subprocess
import sys

from turns import seconds_of

from etude.study.study import load_study

BATCH = ["budget.source_tokens=2000", "budget.target_tokens=2000"]
CASES = [
    ["scale=pocket"],
    ["scale=pocket", "model=big"],
    ["scale=small"],
    ["scale=small", "data.vocab_size=37000", *BATCH],
    ["scale=full", "data.vocab_size=37000", *BATCH],
]


def train(overrides: list[str], steps: int) -> None:
    """Some steps, then the measured and the planned peak in GB."""
    from steps import LENGTH, training_step

    from etude.config.compose import compose
    from etude.config.resolve import resolve
    from etude.inspect.plan.memory import estimate_peak_memory
    from etude.processor.allocator import keep_large_blocks
    from etude.tasks.size import measure_size

    keep_large_blocks()
    config = resolve(compose(overrides))
    tokens = config["budget"]["target_tokens"]
    step = training_step(config, config["data"]["vocab_size"], tokens)
    for _ in range(steps):
        step()
    measured = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    planned = estimate_peak_memory(config, measure_size(config), tokens // LENGTH, LENGTH, LENGTH)
    print(f"{measured / 1e9:8.2f} {planned / 1e9:8.2f} {planned / measured:8.2f}   {' '.join(overrides)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--study", default="")
    parser.add_argument("overrides", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.overrides:
        train(options.overrides, options.steps)
        return
    print("measured  planned    ratio   GB at the peak", flush=True)
    cases = CASES
    if options.study:
        larger = ["scale=small", "budget.source_tokens=4000", "budget.target_tokens=4000"]
        cases = [[f"experiment={options.study}/{arm}", *larger] for arm in load_study(options.study).arms]
    for case in cases:
        subprocess.run([sys.executable, __file__, "--steps", str(options.steps), *case], check=True)
    taken = seconds_of("plan", "table3", "scale=full", env=os.environ | {"OMP_NUM_THREADS": "1"})
    print(f"etude plan table3 scale=full: {taken:.2f} s")


if __name__ == "__main__":
    main()
