"""The table of a confirmation: what the best trials of a search were chosen for, and what fresh seeds gave them."""

import math
from collections.abc import Sequence
from dataclasses import replace

from scipy import special

from etude.report.confirmation import Confirmed, Selection, on_optimism, spread_of
from etude.report.notes import Note
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.report.searched import name_metric
from etude.report.statistics import Scores, mean_interval
from etude.report.wording import format_fixed


def table(title: str, selection: Selection, best: Sequence[Confirmed], baseline: Confirmed | None = None) -> Rows:
    """Make the table of a confirmation: what each trial was chosen for, and what it scores on fresh seeds.

    The differences from the baseline are tested by Student's t with a pooled variance, and are not corrected for how
    many trials are confirmed.

    Args:
        title: of the table.
        selection: what they were chosen from; without a spread, that of the fresh seeds is taken.
        best: the trials that were confirmed.
        baseline: the same of the study's baseline; None: there is none.
    """
    everything = [*best, *([baseline] if baseline else [])]
    spread = spread_of(everything)
    known = selection if selection.spread else replace(selection, spread=spread)
    metric, digits = selection.metric, selection.metric.digits + 1
    columns = [
        Column("", words=True),
        Column(metric.label, "selection"),
        Column("expected", "95 %", words=True),
        Column(metric.label, "confirmed"),
        Column(f"Δ {baseline.name}" if baseline else "Δ", "confirmed"),
        Column("seeds"),
    ]
    rows = []
    for one in everything:
        chosen = None if one.place is None else selection.scores[one.place]
        expected = None if one.place is None or not one.scores else known.expect(one.place, len(one.scores))
        cells = [
            Cell(one.name),
            Cell("–") if chosen is None else Cell(chosen, digits),
            Cell(f"{format_fixed(expected.interval.low, digits)} to {format_fixed(expected.interval.high, digits)}")
            if expected
            else Cell("–"),
            _mean(one, digits),
            _difference(one, baseline, spread, digits),
            Cell(f"{len(one.scores)} of {len(one.scores) + one.diverged}") if one.diverged else Cell(len(one.scores)),
        ]
        rows.append(Row("baseline" if one is baseline else "best", cells, run=bool(one.scores)))
    columns = columns if baseline else [c for c in columns if not c.header.startswith("Δ")]
    if not baseline:
        rows = [Row(row.group, [*row.cells[:4], row.cells[5]], row.run) for row in rows]
    return Rows(title, title, columns, rows, [*map(Note, _notes(known, best, baseline))])


def _mean(one: Confirmed, digits: int) -> Cell:
    if not one.scores:
        return Cell("diverged" if one.diverged else "not run")
    mean = mean_interval(Scores(one.name, one.scores))
    return Cell(mean.value, digits, mean.interval.high - mean.value if mean.interval else None)


def _difference(one: Confirmed, baseline: Confirmed | None, spread: tuple[float, float] | None, digits: int) -> Cell:
    """Return the difference from the baseline with half of its 95 % interval, by the pooled deviation of a seed."""
    if baseline is None or one is baseline or not (one.scores and baseline.scores):
        return Cell()
    difference = math.fsum(one.scores) / len(one.scores) - math.fsum(baseline.scores) / len(baseline.scores)
    if spread is None or one.diverged or baseline.diverged:  # the others do not stand for those that diverged
        return Cell(difference, digits, sign=True)
    deviation, freedom = spread
    error = deviation * math.sqrt(1 / len(one.scores) + 1 / len(baseline.scores))
    return Cell(difference, digits, float(special.stdtrit(freedom, 0.975)) * error, sign=True)


def _notes(selection: Selection, best: Sequence[Confirmed], baseline: Confirmed | None) -> list[str]:
    seeds = max((len(one.scores) for one in best), default=0) or 3
    against = f" and that of {baseline.name}" if baseline else ""
    return [
        f"By {name_metric(selection.metric)} at full budget: what the trials were chosen for, and, apart, what fresh "
        f"seeds gave their config{against}. Only the latter is fair.",
        *([on_optimism(selection, seeds)] if selection.spread else []),
    ]
