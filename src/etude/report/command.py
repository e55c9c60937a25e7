"""`etude report`: the table of a study, in the terminal, as Markdown, for LaTeX, as a picture, or as a page."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from etude.config.studies import load_study, study_names
from etude.errors import UserError
from etude.files import write_text
from etude.report import Report
from etude.report import report as make_report
from etude.report.words import WANDB, Asked, asked
from etude.terminal import PIPE_WIDTH, console

HELP = """usage: etude report STUDY [key=value ...] [--html FILE] [--serve] [--markdown FILE] [--latex FILE] ...

The table of a study, ours beside the paper's. Runs of different settings never share a table: the setting with the
most arms is shown, or the one that key=value selects, such as scale=small or data=multi30k_en_de. With several seeds
there are intervals and tests: a star says that an arm differs from the baseline by more than luck.

  runs_dir=DIR      where the runs lie
  --html FILE       write one page that holds all it shows: table, curves, differences, costs, translations
  --serve[=PORT]    show that page in a browser of this machine, written anew while runs go on
  --markdown FILE   write the table as Markdown instead of printing it
  --latex FILE      write it for a paper: \\input it; the preamble needs booktabs and graphicx
  --svg FILE        write a picture of what the terminal would show
  --wandb PROJECT   write a report on Weights & Biases, with plots of the runs that it has; needs wandb-workspaces
"""
_FILES = ("--html", "--markdown", "--latex", "--svg")
_WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # a picture should not ask a server for its letters


def report(words: Sequence[str]) -> None:
    """What `etude report` does with the words behind it.

    Raises:
        UserError: a word is not understood, or there is nothing to report.
    """
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(HELP + f"\nStudies: {', '.join(study_names())}\n")
        return
    served = [word for word in words if word.partition("=")[0] == "--serve"]
    wanted = asked("report", [word for word in words if word not in served], (*_FILES, WANDB))
    if served:
        _serve(wanted, served[-1].partition("=")[2])
        return
    made = make_report(wanted.study, Path(wanted.runs_dir), wanted.where)
    for option, file in wanted.files.items():
        if option == "--html":
            _page(made, Path(file))
        else:
            write_text(Path(file), _as(option, made))
    if wanted.wandb:
        from etude.report.wandb.publish import publish

        lines = publish(made, Path(wanted.runs_dir), wanted.wandb, wanted.where)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    if not wanted.files and not wanted.wandb:
        console().print(made)


def _page(made: Report, file: Path) -> None:
    from etude.report.page import write_page

    write_page(made.compared, file)
    sys.stdout.write(f"{file.resolve().as_uri()}  open it in a browser\n")


def _serve(wanted: Asked, port: str) -> None:
    from etude.report.serve import serve

    load_study(wanted.study)  # a study that does not exist will not come to be
    if not (port.isdigit() or port == ""):
        raise UserError(f"--serve={port}: a port is a number, such as --serve=8000")
    runs_dir = Path(wanted.runs_dir)
    serve(lambda: make_report(wanted.study, runs_dir, wanted.where).compared, runs_dir / wanted.study, int(port or 0))


def _as(option: str, made: Report) -> str:
    if option == "--markdown":
        return made.markdown()
    return made.latex() if option == "--latex" else _picture(made, f"etude report {made.rows.name}")


def _picture(made: Report, title: str) -> str:
    """What a terminal would show, as SVG."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        recording = Console(record=True, width=PIPE_WIDTH, file=nowhere)
        recording.print(made)
    return _WEB_FONT.sub("", recording.export_svg(title=title))
