"""`etude clean`: show and delete files of runs that are no longer needed."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from etude.cli.arguments import parse
from etude.errors import UserError, did_you_mean
from etude.store.cleaning import Kind, Removable, find_removable, remove
from etude.terminal import console

HELP = """usage: etude clean [STUDY ...] [runs_dir=DIR] [--yes]

Frees disk space: checkpoints of finished runs, files that killed processes left
half written, unfinished runs that stale=rerun has put aside, runs that failed
before their first step, and trainings whose runs were deleted. Everything else
stays: results, configs, metrics, translations and logs, and all of a run that
is unfinished or in use. Checkpoints that several runs share go when all of them
are finished. It shows what it would delete; it deletes with --yes, or if you
confirm.

  STUDY ...      only these studies; by default all, and trainings of no run
  runs_dir=DIR   the folder of runs
  --yes          delete without asking

A run without its checkpoint still appears in reports. To evaluate, analyze or
translate with it, train it again: the same code finds the same weights. The
cache (cache_dir) stays, as other folders of runs may use it.
"""


def main(words: Sequence[str]) -> None:
    """Show the files that can be deleted, and delete them with --yes or after confirmation at a terminal."""
    args = parse("clean", HELP, words)
    runs_dir = args.runs_dir
    if not runs_dir.is_dir():
        raise UserError(f"there is no folder {runs_dir}: say where the runs lie with runs_dir=DIR")
    studies = sorted({path.parent.parent.name for path in runs_dir.glob("*/*/seed*/")})
    for name in args.words:
        if name not in studies:
            raise UserError(f"{runs_dir} holds no runs of a study {name!r}: {did_you_mean(name, studies)}")
    everything = _find(runs_dir, args.words)
    if not everything:
        sys.stdout.write(f"{runs_dir}: nothing to clean\n")
        return
    console().print(_render(everything))
    sys.stdout.write(f"{_sum(everything)} in all\n")
    if "--yes" not in args.options and not _confirm():
        sys.stdout.write("nothing is deleted; --yes deletes it\n")
        return
    still = _find(runs_dir, args.words)  # a run may have been launched meanwhile that needs a checkpoint
    freed = [remove(one) if one in still else 0 for one in everything]
    sys.stdout.write(f"{decimal(sum(freed))} freed\n")
    if left := sum(not size and one.size > 0 for size, one in zip(freed, everything, strict=True)):
        sys.stdout.write(f"{left} left as they are: a process works on their runs, or they are somebody else's\n")


def _find(runs_dir: Path, studies: Sequence[str]) -> list[Removable]:
    """Find what may be deleted of some studies, or of all; a training goes with the last run that names it."""
    if not studies:
        return [*find_removable(runs_dir)]
    return [
        one
        for one in find_removable(runs_dir)
        if ({*studies} >= {*one.studies} if one.kind is Kind.UNNAMED else {*studies} & {*one.studies})
    ]


def _render(removable: Sequence[Removable]) -> Table:
    """Render a table with a row for each study and kind of file; what several studies share is the first one's."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("study", no_wrap=True)
    table.add_column("what may go")
    for header in ("runs", "size"):
        table.add_column(header, justify="right", no_wrap=True)
    for study in sorted({one.studies[0] for one in removable}):
        for kind in Kind:
            if these := [one for one in removable if one.studies[0] == study and one.kind is kind]:
                table.add_row(Text(study), kind.value, str(len(these)), _sum(these))
    return table


def _sum(removable: Sequence[Removable]) -> str:
    return decimal(sum(one.size for one in removable))


def _confirm() -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        return input("delete all this? yes or no: ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        sys.stdout.write("\n")
        return False
