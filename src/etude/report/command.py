"""`etude report`: the table of a study, in the terminal or as a Markdown file."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from etude.config.studies import read_yaml, study_names
from etude.errors import UserError, did_you_mean
from etude.files import write_text
from etude.paths import shipped
from etude.report import report as make_report

HELP = """usage: etude report STUDY [key=value ...] [--markdown FILE]

The table of a study, ours beside the paper's. Runs of different settings never share a table: the setting with the
most arms is shown, or the one that key=value selects, such as scale=small or data=multi30k_en_de.

  runs_dir=DIR      where the runs lie
  --markdown FILE   write the table as Markdown instead of printing it
"""
_PIPE_WIDTH = 120  # columns, where nobody says how wide the paper is


def report(words: Sequence[str]) -> None:
    """What `etude report` does with the words behind it.

    Raises:
        UserError: a word is not understood, or there is nothing to report.
    """
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(HELP + f"\nStudies: {', '.join(study_names())}\n")
        return
    study, file = words[0], None
    where: dict[str, str] = {}
    rest = iter(words[1:])
    for word in rest:
        key, equals, value = word.partition("=")
        if key == "--markdown":
            file = value or next(rest, "")
            if not file:
                raise UserError("--markdown needs the name of a file to write to")
        elif equals and not key.startswith("-"):
            where[key] = value
        else:
            raise UserError(f"report: {word!r} is not key=value; {did_you_mean(word, ['--markdown', '--help'])}")
    runs_dir = where.pop("runs_dir", None) or read_yaml(shipped("conf") / "train.yaml")["runs_dir"]
    made = make_report(study, Path(runs_dir), where)
    if file:
        write_text(Path(file), made.markdown())
        return
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    console.print(made)
