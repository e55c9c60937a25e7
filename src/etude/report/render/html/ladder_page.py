"""The page of a ladder: its table, what came of its predictions, and the differences of each arm against compute."""

from etude.report.figures.ladder import difference, predicted
from etude.report.ladder import Ladder
from etude.report.render.html.document import Page, page
from etude.report.render.html.search_page import SCRIPTS, section
from etude.report.render.rows import Rows

_SECTIONS = {"predicted": "Predicted, and what came", "ladder": "Differences against compute"}


def ladder_page(ladder: Ladder, rows: Rows, command: str) -> str:
    """Render the page.

    Args:
        ladder: what it shows.
        rows: its table.
        command: what was typed to make it.
    """
    by_arm = {arm: figure for arm in ladder.arms if (figure := difference(ladder, arm))}
    held = {rung.label: n for n, rung in enumerate(ladder.rungs[-len(ladder.judged) :])}
    by_rung = {label: figure for label, n in reversed(held.items()) if (figure := predicted(ladder, n))}
    made = {"predicted": ("Rung", by_rung), "ladder": ("Arm", by_arm)}
    figures = {
        name: {"choosers": {label.lower(): (label, {key: key for key in its})}, "made": its}
        for name, (label, its) in made.items()
        if its
    }
    sections = "\n".join(section(*item) for item in _SECTIONS.items())
    frame = Page(ladder.name, rows.title, "", _SECTIONS, sections, SCRIPTS)
    content = {"study": rows.title, "baseline": "", "arms": [], "figures": figures}
    return page(frame, rows, content, command)
