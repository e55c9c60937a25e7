"""Render a study as one self-contained HTML page: the table, curves, differences, costs and translations.

Template, style, scripts and data are in the page, and its policy allows only its own scripts and no requests to other
servers. The table needs no script; the rest is drawn in the browser (`js/`) by plotly.js, which is taken from the
package plotly and included in the page.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from etude.report.comparison import Compared
from etude.report.render.html.data import data
from etude.report.render.html.table import notes, plain_table, setting, table
from etude.report.render.rows import Rows, make_rows

_LINKS = {
    "curves": "Learning curves",
    "forest": "Differences",
    "cost": "Cost and quality",
    "effects": "Together and alone",
    "paper": "The paper and ours",
    "arms": "Two arms",
    "analysis": "Heads and attention",
}
_SCRIPTS = "dom looks table figures made curves samples card maps heads page"


def document(compared: Compared, refresh: float = 0, command: str = "", further: Sequence[Rows] = ()) -> str:
    """Render the page.

    Args:
        compared: what it shows.
        refresh: if it is not 0, the page asks its server every `refresh` seconds for a new version.
        command: what was typed to make it.
        further: tables that stand below the first, such as those of studies of another setting.
    """
    study = compared.study
    links, sections = further_tables(further)
    return page(
        Page(
            name=study.name,
            title=study.title,
            setting=setting(compared),
            links=links | _LINKS,
            sections=sections + study_sections(baseline=compared.baseline.arm),
            scripts=_SCRIPTS,
        ),
        make_rows(compared),
        data(compared),
        command or f"etude report {study.name} --html {study.name}.html",
        refresh,
    )


def study_sections(only: str = "", baseline: str = "") -> str:
    """Render the sections of a study's page, or `only` one of them."""
    sections = Template(_text("study.html")).substitute(baseline=escape(baseline))
    found = re.search(rf'<section id="{only}".*?</section>', sections, re.DOTALL) if only else None
    return found[0] if found else sections


@dataclass(frozen=True)
class Page:
    """The frame of a page.

    Attributes:
        name: of the study or the search.
        title: its title.
        setting: what all runs share, in HTML.
        links: id of a section -> its link.
        sections: what stands below the table, in HTML.
        scripts: the names of its scripts, in order.
    """

    name: str
    title: str
    setting: str
    links: Mapping[str, str]
    sections: str
    scripts: str


def page(frame: Page, rows: Rows, content: Mapping[str, Any], command: str, refresh: float = 0) -> str:
    """Render a page: the table and its notes, then what its scripts draw from `content`."""
    script = "\n".join(_text(f"js/{name}.js") for name in frame.scripts.split())
    links = {"table": "Table"} | {**frame.links}
    return Template(_text("page.html")).substitute(
        policy=_policy(get_plotlyjs(), script, asks=bool(refresh)),
        refresh=f"{refresh:g}",
        title=escape(frame.title),
        study=escape(frame.name),
        asks="" if refresh else " and asks no server for anything",
        command=escape(command),
        setting=frame.setting,
        nav="\n".join(f'    <a href="#{name}">{escape(link)}</a>' for name, link in links.items()),
        sections=frame.sections,
        table=table(rows),
        notes=notes(rows),
        data=pack(as_json(content)),
        style=_text("page.css"),
        plotly=_pack_plotly(),
        script=script,
    )


def further_tables(tables: Sequence[Rows]) -> tuple[dict[str, str], str]:
    """Render tables that stand below the first one; return their links and their sections."""
    links = {f"further{number}": one.title for number, one in enumerate(tables)}
    sections = (
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(rows.title)}</h2>'
        f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{name}-title">{plain_table(rows)}</div>'
        f'<div class="notes">{notes(rows)}</div></section>\n'
        for name, rows in zip(links, tables, strict=True)
    )
    return links, "".join(sections)


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
