"""The page of a search: its table, how it went, what matters most, and where the good values lie."""

from collections.abc import Sequence
from html import escape
from typing import Any

from etude.report.figures.figure import Figure
from etude.report.figures.search import learning_curves, progress
from etude.report.figures.space import contour, importance, importances, parallel, slices, space_of
from etude.report.render.html.document import Page, further_tables, page
from etude.report.render.rows import Rows
from etude.report.searched import Searched

_SECTIONS = {
    "progress": "Best so far",
    "curves": "Learning curves",
    "importance": "What matters",
    "parallel": "All keys at once",
    "slices": "One key",
    "contour": "Two keys",
}
SCRIPTS = "dom looks table figures made page"
_ALONG = {"trials": "trials", "steps": "steps", "hours": "time of training"}


def search_page(found: Searched, rows: Rows, command: str, further: Sequence[Rows] = (), refresh: float = 0) -> str:
    """Render the page.

    Args:
        found: what the search has found.
        rows: the table of its trials.
        command: what was typed to make it.
        further: tables that stand below that of the trials, such as a confirmation's.
        refresh: if it is not 0, the page asks its server every `refresh` seconds for a new version.
    """
    name = found.recorded.name
    recipe = found.recorded.recipe
    fixed = " ".join(recipe.get("fixed", []))
    links, tables = further_tables(further)
    sections = "\n".join(section(*item) for item in _SECTIONS.items())
    title, setting = f"Search: {name}", f"<code>{escape(fixed)}</code>"
    frame = Page(name, title, setting, links | _SECTIONS, tables + sections, SCRIPTS)
    content = {"study": f"search {name}", "baseline": "", "arms": [], "figures": _figures(found)}
    return page(frame, rows, content, command, refresh)


def section(name: str, title: str) -> str:
    """Render the empty section of a figure, which the scripts of a page draw."""
    return (
        f'<section id="{name}" data-made aria-labelledby="{name}-title" hidden><h2 id="{name}-title">{title}</h2>'
        '<div class="controls"></div><figure></figure></section>'
    )


def _figures(found: Searched) -> dict[str, Any]:
    """Make every figure that can be chosen: name -> its choosers (label, options) and choice -> figure."""
    went = progress(found)
    made: dict[str, tuple[dict[str, Any], dict[str, Figure | None]]] = {
        "progress": ({"x": ("Against", {key: _ALONG[key] for key in went})}, {**went}),
        "curves": ({}, {"": learning_curves(found)}),
    }
    if space := space_of(found):
        computed = importances(space)
        keys = [*next(iter(computed.values()), {})]
        keys = [key for key in keys if key in space.keys] or space.keys
        made |= {
            "importance": (
                {"method": ("By", {method: method for method in computed})},
                {method: importance(space, method, its) for method, its in computed.items()},
            ),
            "parallel": ({}, {"": parallel(space)}),
            "slices": ({"key": ("Key", {key: key for key in keys})}, {key: slices(space, key) for key in keys}),
            "contour": ({}, {"": contour(space, *keys[:2]) if len(keys) > 1 else None}),
        }
    return {
        name: {"choosers": choosers, "made": {key: one for key, one in its.items() if one}}
        for name, (choosers, its) in made.items()
        if any(its.values())
    }
