"""A study as one page of HTML that holds all it shows: the table, curves, differences, costs, translations.

The page asks no server for anything. Python gathers what it shows into one block of JSON (`data.py`) and writes the
table, which can be read without a script; the rest is drawn in the browser (`js/`) by plotly.js, which comes out of
the package plotly and is packed into the page.
"""

from pathlib import Path

from etude.files import write_text
from etude.report.comparison import Compared
from etude.report.render.html.document import document


def write_page(compared: Compared, file: Path, refresh: float = 0) -> None:
    """Write the page of a study.

    Args:
        compared: what `etude.report.compare.compare` found.
        file: where to, such as `table3.html`.
        refresh: how often the page shall ask whether it has been written anew, in seconds, where a server serves it;
            0 asks nobody for anything.

    Raises:
        UserError: the file cannot be written.
    """
    write_text(file, document(compared, refresh))
