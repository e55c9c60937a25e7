"""Figures of a comparison, for the page, notebooks and documents.

    from etude.report import figures, results

    figures.forest(results("table3").compare(), "ppl").plotly().show()

Each function returns a `Figure`: what plotly draws, one sentence for those who do not see it, a caption, and the same
numbers as a table; or None if there is nothing to draw.
"""

from etude.report.figures.cost import cost, costs
from etude.report.figures.effects import effects
from etude.report.figures.figure import Figure
from etude.report.figures.forest import forest
from etude.report.figures.heads import SHOWN, heads, probes
from etude.report.figures.paper import agreement, order

__all__ = ["SHOWN", "Figure", "agreement", "cost", "costs", "effects", "forest", "heads", "order", "probes"]
