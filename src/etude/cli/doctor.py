"""`etude doctor`: check what this machine has and what is missing, and say how to get it."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table
from rich.text import Text

from etude import __version__
from etude.cli.arguments import parse
from etude.errors import UserError
from etude.files import typed_path, write_json
from etude.store.cores import usable_cores
from etude.store.machine import look_around
from etude.terminal import console

HELP = """usage: etude doctor [runs_dir=DIR] [--json FILE]

Shows what this machine has that étude can use: versions, GPUs, disk space, W&B,
SLURM, optional packages; and how to get what is missing. It changes nothing.
The exit status is 2 if étude cannot work here, else 0.

  runs_dir=DIR   the folder of runs
  --json FILE    write the findings, for a bug report
"""


def main(words: Sequence[str]) -> None:
    """Check the machine and print a line for each finding.

    Raises:
        UserError: something that étude needs is broken.
    """
    args = parse("doctor", HELP, words)
    if args.words:
        raise UserError(f"doctor does not take {args.words[0]!r}, only runs_dir=DIR and --json FILE")
    cache = Path(os.environ.get("ETUDE_CACHE") or "~/.cache/etude").expanduser()
    findings = [*look_around(args.runs_dir, cache, usable_cores())]
    table = Table.grid(padding=(0, 2))
    for one in findings:
        table.add_row("✗" if one.broken else " ", one.about, Text(one.found), Text(one.mend))
    console().print(f"étude {__version__}")
    console().print(table)
    if file := args.options.get("--json"):
        write_json(typed_path(file), {"etude": __version__, "findings": [asdict(one) for one in findings]})
    if broken := [one.about for one in findings if one.broken]:
        raise UserError(f"étude cannot work before {', '.join(broken)} is fixed, as it says above")
