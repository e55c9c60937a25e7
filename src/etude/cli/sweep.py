"""`etude sweep`: launch the runs of a study or a sweep file."""

import sys

from etude.cli import measured, train
from etude.cli.arguments import parse
from etude.errors import UserError
from etude.paths import shipped
from etude.studies.measured import is_measured

HELP = f"""usage: etude sweep FILE|STUDY [key=value ...] [--path]

Runs all that FILE (a W&B sweep file, method grid or random) or STUDY asks for, each run in a process
of its own and as many at once as there are GPUs, or cores. Finished runs are skipped, half-finished
ones go on. Overrides hold for all runs; run_cap=N ends after N, search_seed=S draws others, tuned=true
runs each arm of a study at its own best as well, if study.yaml says what to try. Of a study that is
measured, not trained, the layers that have not been are measured here, one after the other; its keys
are scale, n, d, k, r (such as n=64,128), repeats, and those of the model:

  etude sweep sweeps/table3.yaml scale=pocket seed=1,2,3 hydra.launcher.workers=2
  etude sweep sweeps/learning_rate.yaml run_cap=40
  etude sweep table3 tuned=true seed=1,2,3
  etude sweep table1 scale=full

  --path  tell where a sweep file lies, and run nothing

The files that come with étude lie in {shipped("sweeps")};
`wandb sweep` takes the path of one, for W&B's agents:

  wandb sweep "$(etude sweep --path learning_rate)"
"""


def main(words: list[str]) -> None:
    """Launch all runs of a study or a sweep file."""
    args = parse("sweep", HELP, words or ["--help"])
    from etude.search.sweep_file import find_file, sweep_overrides

    if "--path" in args.options:
        file = find_file(args.words[0]) if len(args.words) == 1 else None
        if file is None:
            raise UserError("--path prints the path of one sweep file, for example: etude sweep --path learning_rate")
        sys.stdout.write(f"{file.absolute()}\n")
        return
    if find_file(args.words[0]) is None and is_measured(args.words[0]):
        measured.sweep(args.words)
        return
    train.main(["-m", *sweep_overrides(args.words[0], args.words[1:])])
