"""`etude report`: the table of a study, in the terminal, as Markdown, for LaTeX, as a picture, or as a page."""

import os
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast, get_args

from etude.errors import UserError, did_you_mean
from etude.files import write_or_print
from etude.report import Report
from etude.report import report as make_report
from etude.report.arguments import BASELINE, LATEX_COLUMNS, LATEX_NOTES, WANDB, Arguments, parse_arguments
from etude.report.render.latex import Notes, latex
from etude.report.render.rows import Rows
from etude.report.render.terminal import RenderedTable, markdown
from etude.report.search import search
from etude.runs.run_dir import RunDir
from etude.studies.study import load_study, study_names
from etude.terminal import PIPE_WIDTH, console

HELP = """usage: etude report STUDY [key=value ...] [--html FILE] [--serve] [--markdown FILE] [--latex FILE] ...
       etude report SWEEP.yaml [key=value ...] [--markdown FILE] [--latex FILE] [--svg FILE]

The table of a study, ours beside the paper's. Runs of different settings never share a table: the setting with the
most arms is shown, or the one that key=value selects, such as scale=small or data=multi30k_en_de; seed=11,12,13 leaves
other seeds out. Where a text was edited between two sweeps, the runs of the text as it is now are shown; text=DIGITS
selects others. With several seeds there are intervals and tests: a star says that an arm differs from the baseline by
more than the luck of seeds, and in BLEU also by more than that of the test sentences.

Of a sweep file: what it tried, the best on the validation set first, and for a random search what so many trials may be
expected to find. What was typed behind `etude sweep` is typed here too.

  --baseline ARM    hold the other arms against this one
  runs_dir=DIR      where the runs lie
  --html FILE       write one page that holds all it shows: table, curves, differences, costs, translations
  --serve[=PORT]    show that page in a browser of this machine, written anew while runs go on
  --markdown FILE   write the table as Markdown instead of printing it
  --latex FILE      write it for a paper: \\input it; the preamble needs booktabs and graphicx
  --latex-notes=N   below that table: none, short (what its marks mean) or full, as if nothing is said
  --latex-columns=1 fit it into one column of a paper in two, with BLEU below perplexity
  --svg FILE        write a picture of what the terminal would show
                    - in the place of a file is standard output
  --wandb PROJECT   write a report on Weights & Biases, with plots of the runs that it has; needs wandb-workspaces
"""
_WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # a picture should not ask a server for its letters


def main(words: Sequence[str]) -> None:
    """Report on a study or on a sweep file."""
    if words and not {"-h", "--help"} & set(words):
        from etude.search.sweep_file import drawn_keys, names_file, runs_of

        if names_file(words[0]):
            report_search(words, runs_of, drawn_keys)
            return
    report(words)


def report(words: Sequence[str]) -> None:
    """Report on a study.

    Raises:
        UserError: a word is not understood, or there is nothing to report.
    """
    if not words or {"-h", "--help"} & set(words):
        sys.stdout.write(HELP + f"\nStudies: {', '.join(study_names())}\n")
        return
    served = [word for word in words if word.partition("=")[0] == "--serve"]
    wanted = parse_arguments(
        "report", [word for word in words if word not in served], ("--html", *_OPTIONS, WANDB, BASELINE)
    )
    draw = _drawings(wanted.files)
    if served:
        _serve(wanted, served[-1].partition("=")[2])
        return
    made = make_report(wanted.study, Path(wanted.runs_dir), wanted.where, wanted.baseline)
    if page := wanted.files.pop("--html", ""):
        _page(made, page)
    if wanted.wandb:
        from etude.report.render.wandb.publish import publish

        lines = publish(made, Path(wanted.runs_dir), wanted.wandb, wanted.where, wanted.baseline)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    if wanted.files or not (page or wanted.wandb):
        _show(made.rows, wanted.files, draw)


def report_search(
    words: Sequence[str],
    planned: Callable[[str, Sequence[str]], list[tuple[list[str], RunDir]]],
    drawn: Callable[[str, Sequence[str]], Collection[str]],
) -> None:
    """The same of a sweep file.

    Args:
        words: the file, and what was typed behind it.
        planned: gives the overrides and the directory of each run of the sweep so called.
        drawn: gives the keys whose values it draws.

    Raises:
        UserError: a word is not understood, or no run of the sweep is finished.
    """
    for word in words[1:]:
        if word.partition("=")[0] in ("--html", "--serve", WANDB, BASELINE):
            raise UserError(f"{word} is for a study; of a sweep file there are {', '.join(_DRAWINGS)}")
    files = parse_arguments("report", words, _OPTIONS).files
    draw = _drawings(files)
    typed = [word for word in words[1:] if "=" in word and not word.startswith("-")]
    name = " ".join([words[0], *typed])
    _show(search(name, planned(words[0], typed), drawn(words[0], typed)), files, draw)


def _show(rows: Rows, files: Mapping[str, str], draw: Mapping[str, Callable[[Rows], str]]) -> None:
    """Into files, each as its option says; where there is none, on the terminal."""
    for option, file in files.items():
        write_or_print(file, draw[option](rows))
    if not files:
        console().print(RenderedTable(rows))


def _drawings(files: dict[str, str]) -> dict[str, Callable[[Rows], str]]:
    """What draws each kind of file; the options of LaTeX are taken out of `files`.

    Raises:
        UserError: an option has another value, or there is no table in LaTeX to have it.
    """
    asked_for = {option: files.pop(option) for option in _LATEX if option in files}
    for option, value in asked_for.items():
        if value not in _LATEX[option]:
            raise UserError(f"{option}={value}: {did_you_mean(value, _LATEX[option])}")
        if "--latex" not in files:
            raise UserError(f"{option} is for a table in LaTeX: say --latex FILE, too")
    notes, columns = asked_for.get(LATEX_NOTES, "full"), int(asked_for.get(LATEX_COLUMNS, "2"))
    return _DRAWINGS | {"--latex": partial(latex, notes=cast(Notes, notes), columns=columns)}


def _page(made: Report, file: str) -> None:
    from etude.report.render.html.document import document

    write_or_print(file, document(made.compared))
    if file != "-":
        sys.stdout.write(f"{Path(file).resolve().as_uri()}  open it in a browser\n")


def _serve(wanted: Arguments, port: str) -> None:
    from etude.report.render.html.serve import serve

    load_study(wanted.study)  # a study that does not exist will not come to be
    if wanted.files or wanted.wandb:
        raise UserError(f"--serve shows the page and writes nothing: leave out {', '.join([*wanted.files]) or WANDB}")
    if port and not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UserError(f"--serve={port}: a port is a number below 65536, such as --serve=8000")
    runs_dir = Path(wanted.runs_dir)
    serve(
        lambda: make_report(wanted.study, runs_dir, wanted.where, wanted.baseline).compared,
        runs_dir / wanted.study,
        int(port or 0),
    )


def _picture(rows: Rows) -> str:
    """What a terminal would show, as SVG."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        recording = console(record=True, width=PIPE_WIDTH, file=nowhere)
        recording.print(RenderedTable(rows))
    return _WEB_FONT.sub("", recording.export_svg(title=f"etude report {rows.name}"))


_DRAWINGS: dict[str, Callable[[Rows], str]] = {"--markdown": markdown, "--latex": latex, "--svg": _picture}
_LATEX: dict[str, tuple[str, ...]] = {LATEX_NOTES: get_args(Notes), LATEX_COLUMNS: ("1", "2")}
_OPTIONS = (*_DRAWINGS, *_LATEX)
