"""The page of a ladder: its table, and the differences of each arm against compute."""

from etude.report.figures.ladder import difference
from etude.report.ladder import Ladder
from etude.report.render.html.document import Page, page
from etude.report.render.html.search_page import SCRIPTS, section
from etude.report.render.rows import Rows


def ladder_page(ladder: Ladder, rows: Rows, command: str) -> str:
    """Render the page.

    Args:
        ladder: what it shows.
        rows: its table.
        command: what was typed to make it.
    """
    title = "Differences against compute"
    made = {arm: figure for arm in ladder.arms if (figure := difference(ladder, arm))}
    frame = Page(ladder.name, rows.title, "", {"ladder": title}, section("ladder", title), SCRIPTS)
    choosers = {"arm": ("Arm", {arm: arm for arm in made})}
    figures = {"ladder": {"choosers": choosers, "made": made}} if made else {}
    content = {"study": rows.title, "baseline": "", "arms": [], "figures": figures}
    return page(frame, rows, content, command)
