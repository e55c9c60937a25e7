"""`etude sweep`: the runs of a study or a sweep file."""

import sys

from etude.cli import train
from etude.errors import UserError
from etude.paths import shipped

HELP = f"""usage: etude sweep FILE|STUDY [key=value ...]

Runs all that FILE (a W&B sweep file, method grid or random) or STUDY asks for, each run in a process
of its own and as many at once as there are GPUs, or cores. Finished runs are skipped, half-finished
ones go on. Overrides hold for all runs; run_cap=N ends after N, search_seed=S draws others, tuned=true
runs each arm of a study at its own best as well, if study.yaml says what to try:

  etude sweep sweeps/table3.yaml scale=pocket seed=1,2,3 hydra.launcher.workers=2
  etude sweep sweeps/learning_rate.yaml run_cap=40
  etude sweep table3 tuned=true seed=1,2,3

The files that come with étude lie in {shipped("sweeps")};
`wandb sweep` takes the path of one, for W&B's agents:

  wandb sweep "$(etude sweep --path learning_rate)"
"""


def main(words: list[str]) -> None:
    """Launch all runs of a study or a sweep file."""
    if not words or {"-h", "--help"} & set(words):
        sys.stdout.write(HELP)
        return
    from etude.search.sweep_file import find_file, sweep_overrides

    if "--path" in words:
        names = [word for word in words if word != "--path"]
        file = find_file(names[0]) if len(names) == 1 else None
        if file is None:
            raise UserError("--path is told for one sweep file, such as: etude sweep --path learning_rate")
        sys.stdout.write(f"{file.absolute()}\n")
        return
    for word in words:
        if word.startswith("-"):
            raise UserError(f"etude sweep takes key=value and no {word}; did you mean --help?")
    train.main(["-m", *sweep_overrides(words[0], words[1:])])
