"""Template, style, scripts and data put together, so that the page runs what we wrote and nothing else."""

import base64
import gzip
import hashlib
import json
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from etude.report.comparison import Compared
from etude.report.render.html.data import data
from etude.report.render.html.table import notes, setting, table
from etude.report.render.rows import make_rows

_HERE = Path(__file__).parent
_SCRIPTS = (
    "unpack",
    "dom",
    "looks",
    "theme",
    "table",
    "figures",
    "labels",
    "curves",
    "forest",
    "cost",
    "agreement",
    "paper",
    "samples",
    "card",
    "maps",
    "heads",
    "contents",
    "refresh",
)


def document(compared: Compared, refresh: float = 0) -> str:
    """The page as text; see `write_page`."""
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
        plotly=_packed_plotly(),
        script=script,
    )


def as_json(value: Any) -> str:
    """JSON as JavaScript parses it.

    Raises:
        ValueError: a number is not finite, which JSON cannot say.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def pack(text: str) -> str:
    """Gzipped, in Base64, as `js/unpack.js` unpacks it: a third of its size, and no text can end its block."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _policy(*scripts: str, asks: bool) -> str:
    """Which scripts may run, by their hashes, and that nothing is fetched from anywhere."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    rules = [
        "default-src 'none'",
        "script-src " + " ".join(f"'sha256-{one}'" for one in hashes),
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules + ["connect-src 'self'"] * asks)


@cache
def _packed_plotly() -> str:
    return pack(get_plotlyjs())


@cache
def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
