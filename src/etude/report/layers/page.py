"""An HTML page of the measured layers: tables and plots, in light and dark. It has no script and loads nothing."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from etude.report import render
from etude.report.layers.chart import draw_layers
from etude.report.layers.tables import Table, make_tables, notes
from etude.runs.measurements import Found
from etude.studies.measured import MeasuredStudy

_STYLE = Path(render.__file__).parent / "html" / "page.css"


def document(study: MeasuredStudy, kept: Mapping[str, Found], command: str) -> str:
    """Render the page, which names the `command` that was typed to make it."""
    title = escape(study.title)
    notes_html = "\n".join(f"<p>{escape(note)}</p>" for note in notes(study, kept))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{_STYLE.read_text(encoding="utf-8")}
.layers {{ width: 100%; min-width: 44rem; }}
tr.begins > * {{ border-top: 1px solid var(--rule); }}</style>
</head>
<body>
<header class="top"><p class="name">étude / {escape(study.name)}</p><h1>{title}</h1></header>
<main>
<section aria-label="Plots"><div class="scroll" role="region" tabindex="0" aria-label="Plots">
{draw_layers(study, kept)}</div></section>
{"".join(map(_section, make_tables(study, kept)))}
<div class="notes">{notes_html}</div>
</main>
<footer><p>Made by <code>{escape(command)}</code>.</p></footer>
</body>
</html>
"""


def _section(table: Table) -> str:
    heads = "".join(f'<th scope="col" class="words">{escape(header)}</th>' for header in table.headers)
    body = "\n".join(_row(row) for row in table.rows)
    title = escape(table.title)
    return (
        f'<section><h2>{title}</h2><div class="scroll" role="region" tabindex="0" aria-label="{title}">'
        f"<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div></section>\n"
    )


def _row(cells: list[str]) -> str:
    name, *rest = (escape(cell) for cell in cells)
    kind = ' class="begins"' if name else ""
    return f'<tr{kind}><th scope="row">{name}</th>{"".join(f"""<td class="words">{one}</td>""" for one in rest)}</tr>'
