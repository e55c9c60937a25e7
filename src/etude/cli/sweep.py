"""`etude sweep`: launch the runs of a study or a sweep file."""

import sys

from etude.cli import train
from etude.cli.arguments import parse
from etude.errors import UserError
from etude.paths import shipped

HELP = f"""usage: etude sweep FILE|STUDY [key=value ...] [--path]

Runs all that FILE (a W&B sweep file: grid, random or bayes) or STUDY asks for,
each run in its own process, as many at once as there are GPUs, or cores. It
skips finished runs and resumes unfinished ones. Overrides apply to all runs.
ladder=true runs each arm on the rungs of the study's ladder, with their seeds.
until=decided adds seeds to each arm of a study until its report decides on it.
run_cap=N stops after N runs, search_seed=S draws others, and tuned=true also
runs each arm of a study at its own best values, if study.yaml says what to try.
Of a search (method bayes, early_terminate or a block `search:`), confirm=K also
trains the best K trials, and the baseline, on three fresh seeds.

  etude sweep sweeps/table3.yaml seed=1,2,3 hydra.launcher.workers=2
  etude sweep sweeps/learning_rate.yaml run_cap=40
  etude sweep table3 tuned=true seed=1,2,3
  etude sweep sweeps/search.yaml confirm=3
  etude sweep STUDY ladder=true
  etude sweep STUDY until=decided

  --path  print the path of a sweep file, and run nothing

The sweep files of étude are in
{shipped("sweeps")};
`wandb sweep` takes the path of one, for W&B's agents:

  wandb sweep "$(etude sweep --path learning_rate)"
"""


def main(words: list[str]) -> None:
    """Launch all runs of a study or a sweep file."""
    args = parse("sweep", HELP, words or ["--help"])
    from etude.search.sweep_file import find_file, objective_of, sweep_overrides

    if "--path" in args.options:
        file = find_file(args.words[0]) if len(args.words) == 1 else None
        if file is None:
            raise UserError("--path prints the path of one sweep file, for example: etude sweep --path learning_rate")
        sys.stdout.write(f"{file.absolute()}\n")
        return
    overrides = sweep_overrides(args.words[0], args.words[1:])
    objective_of(args.words[0])  # a mistake in it is told before anything is trained
    train.main(["-m", *overrides])
