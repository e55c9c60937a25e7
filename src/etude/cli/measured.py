"""`etude sweep`, `plan` and `report` for a study that is measured, not trained."""

import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from etude.cli.arguments import Arguments
from etude.errors import UserError
from etude.files import format_json, write_or_print, write_or_print_page
from etude.runs.measurements import note_on_measurements, read_measurements
from etude.studies.arms import split_override
from etude.studies.measured import MeasuredStudy, load_measured
from etude.terminal import console, format_duration

_DRAWINGS = ("--html", "--svg")


def sweep(words: Sequence[str]) -> None:
    """Measure the layers that have not been measured, and print a line when each is done."""
    study, runs_dir = _find_study(Arguments([*words], {}), allowed=())
    from etude.inspect.complexity.study import measure_study  # imports torch, so only after the words are checked

    for layer, seconds in measure_study(study, runs_dir):
        status = "is measured already" if seconds is None else f"measured in {format_duration(seconds)}"
        sys.stdout.write(f"{layer} {status}\n")
        sys.stdout.flush()
    sys.stdout.write(f"etude report {shlex.join(words)}  shows what was found\n")


def plan(args: Arguments) -> None:
    """Print what would be measured, and what has been."""
    study, runs_dir = _find_study(args, allowed=("--json",))
    kept = read_measurements(study, runs_dir)
    if "--json" in args.options:
        layers = [study.setting(row) | {"layer": row.name, "measured": row.name in kept} for row in study.rows]
        sys.stdout.write(format_json({"study": study.name, "layers": layers}))
        return
    sizes = "; ".join(f"{symbol} = {', '.join(map(str, values))}" for symbol, values in study.sizes.items())
    note = note_on_measurements(study, runs_dir, shlex.join(args.words))
    console().print(
        f"{note}\nFLOPs, seconds (medians of {study.repeats}), bytes, operations that wait for each other and paths of "
        f"one layer at {sizes}."
    )


def report(args: Arguments) -> None:
    """Show the measurements on the terminal, or write them as a page or a picture.

    Raises:
        UserError: nothing has been measured with this setting.
    """
    study, runs_dir = _find_study(args, allowed=_DRAWINGS)
    kept = read_measurements(study, runs_dir)
    if not kept:
        words = shlex.join(args.words + [f"runs_dir={runs_dir}"] * ("runs_dir" in args.options))
        raise UserError(f"{runs_dir} holds no such measurement of {study.name}; this makes it: etude sweep {words}")
    from etude.report.layers.chart import draw_layers
    from etude.report.layers.page import document
    from etude.report.layers.tables import make_tables, notes

    page, picture = args.options.get("--html"), args.options.get("--svg")
    if page:
        typed = shlex.join(["etude", "report", *args.words, "--html", Path(page).name])
        write_or_print_page(page, document(study, kept, typed))
    if picture:
        write_or_print(picture, draw_layers(study, kept))
    if page or picture:
        return
    out = console()
    for table in make_tables(study, kept):
        out.print(Text(table.title, style="bold"))
        out.print(_terminal(table.headers, table.rows))
        out.print()
    out.print("\n".join(notes(study, kept)))


def _find_study(args: Arguments, allowed: Collection[str]) -> tuple[MeasuredStudy, Path]:
    """Load the study with its overrides, and find the folder of runs.

    Raises:
        UserError: a word or an option applies only to studies that are trained.
    """
    for option in args.options:
        if option != "runs_dir" and option not in allowed:
            there = f"there is {' and '.join(allowed)}" if allowed else "there is none"
            raise UserError(f"{option} is for what is trained; of {args.study}, which is measured, {there}")
    folders = [word for word in args.words if word.startswith("runs_dir=")]
    options = args.options | dict(map(split_override, folders))
    typed = [word for word in args.words[1:] if word not in folders]
    return load_measured(args.study, typed), Arguments(args.words, options).runs_dir


def _terminal(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> RichTable:
    table = RichTable(box=box.HORIZONTALS, show_edge=False, padding=(0, 1, 0, 0))
    for header in headers:
        table.add_column(header, no_wrap=header != "paper's path")
    for row, after in zip(rows, [*rows[1:], [""]], strict=True):
        table.add_row(*row, end_section=bool(after[0]) and len(rows) > len({row[0] for row in rows}))
    return table
