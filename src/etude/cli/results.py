"""`etude results`: the runs of a study as a tidy frame, and on stderr what is not in it."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from etude.errors import UserError
from etude.files import write_or_print
from etude.report import Results
from etude.report import results as find_results
from etude.report.arguments import WANDB, asked
from etude.report.frame import as_csv, as_json, write_parquet
from etude.runs.run_dir import RunDir
from etude.runs.run_state import standing
from etude.studies.study import study_names

HELP = """usage: etude results STUDY [key=value ...] [--csv FILE] [--json FILE] [--parquet FILE]
                           [--wandb [ENTITY/]PROJECT]

One row a finished run, for notebooks and other tools: what the run is, what it was tested on, what it scored and what
it took. The runs are those that `etude report` shows, selected in the same way; what was left out is said on stderr.

  runs_dir=DIR      where the runs lie
  --csv FILE        with a header; - is stdout, which is what happens if nothing is said
  --json FILE       a list of objects; - is stdout
  --parquet FILE    needs pyarrow
  --wandb PROJECT   the runs that Weights & Biases has, instead of those that lie here

In Python: etude.report.results("table3").frame()
"""


def main(words: Sequence[str]) -> None:
    """Write the runs of a study as a frame; those without a result are named with their state."""
    results(words, _describe_state)


def _describe_state(run: RunDir) -> str:
    try:
        found = standing(run)
    except (UserError, OSError, ValueError):
        return "unfinished"
    return f"{found.state}, {found.error}" if found.error else str(found.state)


def results(words: Sequence[str], state_of: Callable[[RunDir], str]) -> None:
    """Write the frame of a study.

    Args:
        words: the study, and what is asked of it.
        state_of: where an unfinished run stands, such as "failed: ...".

    Raises:
        UserError: a word is not understood, or there is nothing to show.
    """
    if not words or {"-h", "--help"} & set(words):
        sys.stdout.write(HELP + f"\nStudies: {', '.join(study_names())}\n")
        return
    wanted = asked("results", words, ("--csv", "--json", "--parquet", WANDB))
    if wanted.wandb:
        from etude.report.render.wandb.fetch import fetch

        fetched = fetch(wanted.study, wanted.wandb, wanted.where)
        found, state_of = fetched.results, fetched.standing
    else:
        found = find_results(wanted.study, wanted.runs_dir, wanted.where)
    rows = found.frame()
    for option, file in (wanted.files or {"--csv": "-"}).items():
        if option == "--parquet":
            if file == "-":
                raise UserError("--parquet - would fill the terminal with bytes: name a file, or write --csv -")
            write_parquet(rows, Path(file))
        else:
            write_or_print(file, as_csv(rows) if option == "--csv" else as_json(rows))
    sys.stderr.write("".join(f"{note}\n" for note in _left_out(found, state_of)))


def _left_out(found: Results, state_of: Callable[[RunDir], str]) -> list[str]:
    """What there is besides the rows, and what there might be."""
    unfinished = found.selection.unfinished
    begun = {run.arm for run in (*found.runs, *unfinished)}
    missing = [arm for arm in found.study.arms if arm not in begun]
    notes = [f"Left out: {run.arm}, seed {run.seed}: {state_of(run.run_dir)}." for run in unfinished]
    notes += [f"Not run: {', '.join(missing)}."] if missing else []
    return [*notes, *found.notes]
