"""Render a study as one self-contained HTML page: the table, curves, differences, costs and translations.

Template, style, scripts and data are in the page, and its policy allows only its own scripts and no requests to other
servers. The table needs no script; the rest is drawn in the browser (`js/`) by plotly.js, which is taken from the
package plotly and included in the page.
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

_SCRIPTS = "dom looks table figures made curves samples card maps heads page"


def write_page(compared: Compared, file: Path, refresh: float = 0) -> None:
    """Write the page of a study; see `document`."""
    write_text(file, document(compared, refresh))


def document(compared: Compared, refresh: float = 0, command: str = "") -> str:
    """Render the page.

    Args:
        compared: what it shows.
        refresh: if it is not 0, the page asks its server every `refresh` seconds for a new version.
        command: what was typed to make it.
    """
    name = compared.study.name
    rows = make_rows(compared)
    script = "\n".join(_text(f"js/{name}.js") for name in _SCRIPTS.split())
    return Template(_text("page.html")).substitute(
        policy=_policy(get_plotlyjs(), script, asks=bool(refresh)),
        refresh=f"{refresh:g}",
        title=escape(compared.study.title),
        study=escape(name),
        asks="" if refresh else " and asks no server for anything",
        command=escape(command or f"etude report {name} --html {name}.html"),
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
    """Serialise to JSON; a dataclass becomes an object with its fields.

    Raises:
        ValueError: a number is not finite, which JSON does not allow.
    """
    return json.dumps(value, default=asdict, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def pack(text: str) -> str:
    """Compress text with gzip and encode it in Base64; `js/dom.js` unpacks it.

    This takes a third of the size, and the text cannot close the script block that it is in.
    """
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _policy(*scripts: str, asks: bool) -> str:
    """Make the content security policy: only these scripts, by hash; requests only to the same server, if it `asks`."""
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
