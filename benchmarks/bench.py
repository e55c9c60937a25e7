"""How fast étude is beside its peers, on this machine: one table.

    make bench                                            installs the peers and prints the table
    python benchmarks/bench.py [--only training,decoding] [--rounds 5] [--threads 2] [--json FILE]

Whoever is compared takes turns; what counts is the median of the rounds' ratios, with the least and the greatest. A
peer that is not installed has a row that says so. With --json the file keeps the rows, and those that it holds of other
parts stay and are printed too, so that parts can be measured one at a time.
"""

import argparse
import datetime
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from parts import PARTS, US, Row
from rich.table import Table

from etude.files import write_json
from etude.terminal import console

LIBRARIES = ("torch", "lightning", "transformers", "ctranslate2", "sentencepiece")


def machine(threads: int) -> dict[str, Any]:
    """What it was measured on, and when."""
    from etude.store.environment import environment, installed_version

    made = environment({})
    versions = {name: installed_version(name) for name in LIBRARIES}
    return {"date": f"{datetime.date.today()}", "threads": threads, "versions": versions} | {
        key: made[key] for key in ("cpu", "cpus", "python", "platform")
    }


def ratios(row: Row, ours: Row) -> list[float]:
    """How many times as fast étude was, round by round; none where it failed."""
    if isinstance(ours.figures, str):
        return []
    pairs = zip(ours.figures, row.figures, strict=True)
    return [theirs / mine if row.unit == "s" else mine / theirs for mine, theirs in pairs]


def render(rows: Sequence[Row]) -> Table:
    """The rows, each beside étude's first of its part."""
    table = Table("what", "who", "median", "least to greatest", "", "étude ÷ it", "of the peak", box=None)
    for row in rows:
        ours = next((one for one in rows if one.part == row.part and one.who.startswith(US)), None)
        what = row.part if row is next(one for one in rows if one.part == row.part) else ""
        if isinstance(row.figures, str):
            table.add_row(what, row.who, row.figures)
            continue
        held = "" if ours is None or ours is row else _spread(ratios(row, ours), "{:.2f}")
        middle, least, most = (_number(of(row.figures)) for of in (median, min, max))
        share = "" if row.share is None else f"{row.share:.0%}"
        table.add_row(what, row.who, middle, f"{least} to {most}", row.unit, held, share)
    return table


def _spread(figures: Sequence[float], form: str) -> str:
    if not figures:
        return ""
    middle, least, most = (form.format(of(figures)) for of in (median, min, max))
    return f"{middle} ({least} to {most})"


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda words: words.split(","), default=[*PARTS], help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="where the rows are kept, part by part")
    asked = parser.parse_args()
    if unknown := set(asked.only) - set(PARTS):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if asked.rounds < 1:
        parser.error("--rounds: at least one, or there is nothing to take a median of")
    kept = json.loads(asked.json.read_text()) if asked.json and asked.json.exists() else {"rows": []}
    rows = [Row(**row) for row in kept["rows"]]
    about = machine(asked.threads)
    for number, name in enumerate(asked.only, start=1):
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} part {number} of {len(asked.only)}: {name}\n")
        new = PARTS[name](asked.rounds, asked.threads)
        rows = [*(row for row in rows if row.part not in {one.part for one in new}), *new]
        if asked.json:  # after each part, so that it stays whatever befalls the next
            write_json(asked.json, {"machine": about, "rows": [asdict(row) for row in rows]})
    out = console(width=150)
    out.print(render(rows))
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items() if number)
    out.print(f"{about['cpu']}, {about['cpus']} cores, {about['threads']} threads; {versions}; {about['date']}")


if __name__ == "__main__":
    main()
