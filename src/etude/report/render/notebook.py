"""Render a report for a notebook: as text of bounded length, and in HTML."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from html import escape
from io import StringIO

from etude.report.render.html.table import notes, table
from etude.report.render.rows import Rows
from etude.report.render.terminal import RenderedTable
from etude.terminal import PIPE_WIDTH, console

MOST = 2900
"""Characters of the text, at most."""

_STYLE = """<style>
.etude-report table { font-variant-numeric: tabular-nums; }
.etude-report th, .etude-report td { text-align: right; vertical-align: bottom; white-space: nowrap; }
.etude-report .words, .etude-report th:first-child { text-align: left; }
.etude-report .begins > * { border-top: 1px solid currentColor; }
.etude-report button { all: unset; }
.etude-report .whose { display: block; font-weight: normal; opacity: .7; }
.etude-report .is { display: none; }
.etude-report .absent { opacity: .6; }
</style>"""


def as_text(rows: Rows, rest: str) -> str:
    """Render the table and its notes as in a terminal, with as many arms, and then notes, as there is room for.

    Args:
        rows: the table.
        rest: how to see what is left out.
    """
    arms, said = len(rows.rows), len(rows.paragraphs)

    def render(shown: int, told: int) -> str:
        text = _print(replace(rows, rows=rows.rows[:shown], notes=rows.paragraphs[:told], left_out=[]))
        missing = [f"{arms - shown} of {arms} arms"] * (shown < arms) + [f"{said - told} notes"] * (told < said)
        return f"{text}\nNot shown: {' and '.join(missing)}: {rest}" if missing else text

    shown = _most(arms, lambda n: render(n, 0)) or 1
    told = _most(said, lambda n: render(shown, n)) if shown == arms else 0
    return render(shown, told)[:MOST]


def _most(count: int, render: Callable[[int], str]) -> int:
    """Return how many of `count` there is room for."""
    return bisect_left(range(1, count + 1), True, key=lambda n: len(render(n)) > MOST)


def _print(rows: Rows) -> str:
    out = StringIO()
    # In a notebook, rich would show what is printed anywhere.
    plain = console(width=PIPE_WIDTH, file=out, force_jupyter=False, force_terminal=False, color_system=None)
    plain.print(RenderedTable(rows), crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")


def as_html(rows: Rows) -> str:
    """Render the table of the page, with its notes folded below it."""
    folded = f"<details><summary>{len(rows.paragraphs)} notes</summary>\n{notes(rows)}\n</details>"
    title = f"<p><b>{escape(rows.title)}</b></p>"
    return f'{_STYLE}\n<div class="etude-report">{title}\n{table(rows)}\n{folded * bool(rows.paragraphs)}</div>'
