"""A study as one page of HTML that holds all it shows: the table, curves, differences, costs, translations.

Template, style, scripts and data are put together so that the page runs what we wrote and nothing else, and asks no
server for anything. The table can be read without a script; the rest is drawn in the browser (`js/`) by plotly.js,
which comes out of the package plotly and is packed into the page.
"""

import base64
import gzip
import hashlib
import json
from dataclasses import asdict
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from etude.files import write_text
from etude.report.comparison import Compared
from etude.report.render.html.data import data
from etude.report.render.html.table import notes, setting, table
from etude.report.render.rows import make_rows

_SCRIPTS = (
    "dom",
    "looks",
    "table",
    "figures",
    "curves",
    "forest",
    "cost",
    "paper",
    "samples",
    "card",
    "maps",
    "heads",
    "page",
)


def write_page(compared: Compared, file: Path, refresh: float = 0) -> None:
    """Write the page of a study; see `document`."""
    write_text(file, document(compared, refresh))


def document(compared: Compared, refresh: float = 0) -> str:
    """The page as text, which asks every `refresh` seconds whether a server has it anew; with 0 nobody for anything."""
    rows = make_rows(compared)
    script = "\n".join(_text(f"js/{name}.js") for name in _SCRIPTS)
    return Template(_text("page.html")).substitute(
        policy=_policy(get_plotlyjs(), script, asks=bool(refresh)),
        refresh=f"{refresh:g}",
        title=escape(compared.study.title),
        study=escape(compared.study.name),
        baseline=escape(compared.baseline.arm),
        setting=setting(compared),
        table=table(rows),
        notes=notes(rows),
        data=pack(as_json(data(compared))),
        style=_text("page.css"),
        plotly=_pack_plotly(),
        script=script,
    )


def as_json(value: Any) -> str:
    """JSON as JavaScript parses it; a dataclass is an object of its fields.

    Raises:
        ValueError: a number is not finite, which JSON cannot say.
    """
    return json.dumps(value, default=asdict, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def pack(text: str) -> str:
    """Gzipped, in Base64, as `js/dom.js` unpacks it: a third of its size, and no text can end its block."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _policy(*scripts: str, asks: bool) -> str:
    """Which scripts may run, by their hashes, and that nothing is fetched from anywhere."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'" + "; connect-src 'self'" * asks
    )


@cache
def _pack_plotly() -> str:
    return pack(get_plotlyjs())


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
