"""`etude report`: the table of a study, in the terminal, as Markdown, or as a picture."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from etude.config.studies import study_names
from etude.config.yamlfile import read_yaml
from etude.errors import UserError, did_you_mean
from etude.files import write_text
from etude.paths import shipped
from etude.report import Report
from etude.report import report as make_report
from etude.terminal import PIPE_WIDTH, console

HELP = """usage: etude report STUDY [key=value ...] [--markdown FILE] [--svg FILE]

The table of a study, ours beside the paper's. Runs of different settings never share a table: the setting with the
most arms is shown, or the one that key=value selects, such as scale=small or data=multi30k_en_de.

  runs_dir=DIR      where the runs lie
  --markdown FILE   write the table as Markdown instead of printing it
  --svg FILE        write a picture of what the terminal would show instead of printing it
"""
_WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # a picture should not ask a server for its letters


def report(words: Sequence[str]) -> None:
    """What `etude report` does with the words behind it.

    Raises:
        UserError: a word is not understood, or there is nothing to report.
    """
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(HELP + f"\nStudies: {', '.join(study_names())}\n")
        return
    study = words[0]
    files = dict.fromkeys(("--markdown", "--svg"), "")
    where: dict[str, str] = {}
    rest = iter(words[1:])
    for word in rest:
        key, equals, value = word.partition("=")
        if key in files:
            files[key] = value or next(rest, "")
            if not files[key]:
                raise UserError(f"{key} needs the name of a file to write to")
        elif equals and not key.startswith("-"):
            where[key] = value
        else:
            raise UserError(f"report: {word!r} is not key=value; {did_you_mean(word, [*files, '--help'])}")
    runs_dir = where.pop("runs_dir", None) or read_yaml(shipped("conf") / "train.yaml")["runs_dir"]
    made = make_report(study, Path(runs_dir), where)
    if files["--markdown"]:
        write_text(Path(files["--markdown"]), made.markdown())
    if files["--svg"]:
        write_text(Path(files["--svg"]), _picture(made, f"etude report {study}"))
    if not any(files.values()):
        console().print(made)


def _picture(made: Report, title: str) -> str:
    """What a terminal would show, as SVG."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        recording = Console(record=True, width=PIPE_WIDTH, file=nowhere)
        recording.print(made)
    return _WEB_FONT.sub("", recording.export_svg(title=title))
