"""`etude results`: write the runs of a study as a tidy frame, and on stderr the runs that are missing."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from etude.cli.arguments import Arguments, parse
from etude.cli.report import find_search, names_sweep, read_from, refuse_metric_without_from, sweep_words
from etude.errors import UserError
from etude.files import typed_path, write_or_print
from etude.garbage import pause_garbage_collector
from etude.report import Results, results_of_sweep
from etude.report import results as find_results
from etude.report.frame import as_json, write_parquet
from etude.report.searched import frame
from etude.report.wording import format_count
from etude.search import sweep_file
from etude.study.study import load_study, study_names

HELP = """usage: etude results STUDY|SWEEP.yaml [key=value ...] [--csv FILE]
                           [--json FILE] [--parquet FILE]
                           [--from FILE.csv|wandb:PROJECT]

One row per finished run, for notebooks and other tools: what the run is, its
test set, its scores and its cost. It selects runs as `etude report` does; what
is left out is printed to stderr. STUDY may be single: runs typed one by one;
STUDY ladder=true is the runs on all rungs of its ladder, with a column rung.
Of a search (its file or its journal): one row per trial, with its state, the
step that it came to, and its scores there and at the end.

  runs_dir=DIR      the folder of runs
  --csv FILE        with a header; - is standard output, the default
  --json FILE       a list of objects; - is standard output
  --parquet FILE    needs pyarrow
  --from PLACE      the runs in a CSV, or on Weights & Biases with
                    wandb:[ENTITY/]PROJECT, instead of those in runs_dir
  --metric LIST     the metrics in a CSV: test_loss:lower,accuracy:higher

In Python: etude.results("table3") is a pandas.DataFrame
"""


@pause_garbage_collector()
def main(words: Sequence[str]) -> None:
    """Write the runs of a study as a frame, and report runs without a result with their state."""
    args = parse("results", f"{HELP}\nStudies: {', '.join(study_names())}\n", words or ["--help"])
    refuse_metric_without_from(args)
    is_sweep = bool(args.words) and "--from" not in args.options and names_sweep(args.study)
    if is_sweep and (searched := find_search(args)):
        rows, notes = frame(searched), searched.left_out
    else:
        found, rungs = _find(args, is_sweep)
        rows, notes = found.frame(), _notes_on_missing(found)
        if rungs:
            rows.insert(1, "rung", [rungs[run.run_dir.path] for run in found.runs])  # which tokens alone do not tell
    files = {option: file for option, file in args.options.items() if option in ("--csv", "--json", "--parquet")}
    for option, file in (files or {"--csv": "-"}).items():
        if option == "--parquet":
            if file == "-":
                raise UserError("--parquet - would fill the terminal with bytes: name a file, or write --csv -")
            write_parquet(rows, typed_path(file))
        else:
            write_or_print(file, rows.to_csv(index=False) if option == "--csv" else as_json(rows))
    sys.stderr.write("".join(f"{note}\n" for note in notes))


def _find(args: Arguments, is_sweep: bool) -> tuple[Results, dict[Path, str]]:
    """Read the runs of a study, its ladder or a sweep file, or those that --from names; and of a ladder's the rungs."""
    if place := args.options.get("--from"):
        return read_from(place, args), {}
    typed = sweep_words(args)
    if is_sweep:
        planned = (run for _, run in sweep_file.runs_of(args.study, typed))
        return results_of_sweep(shlex.join([args.study, *typed]), planned, None), {}
    if args.where.get("ladder") != "true":
        where = {key: value for key, value in args.where.items() if key != "ladder"}
        return find_results(args.study, args.runs_dir, where), {}
    rungs, places = sweep_file.ladder_runs_of(args.study, [word for word in typed if word != "ladder=true"])
    found = results_of_sweep(shlex.join([args.study, *typed]), places, load_study(args.study))
    return found, dict(zip((one.path for one in places), rungs, strict=True))


def _notes_on_missing(found: Results) -> list[str]:
    """List the unfinished runs, the arms without a run, and other notes."""
    unfinished = found.selection.unfinished
    begun = {run.arm for run in (*found.runs, *unfinished)}
    missing = [arm for arm in found.study.arms if arm not in begun]
    notes = []
    for run in unfinished:
        why = ", ".join(filter(None, (run.state, run.error)))
        notes.append(f"Left out: {run.arm}, seed {run.seed}: {why}.")
    shown = {run.run_dir.path for run in found.runs}
    if tuned := sum(run.run_dir.path not in shown for run in found.selection.best):
        keys = ", ".join(found.study.tune)
        notes.append(f"Left out: {format_count(tuned)} of arms at their own best {keys}: say which to see them.")
    notes += [f"Not run: {', '.join(missing)}."] if missing else []
    return [*notes, *found.notes]
