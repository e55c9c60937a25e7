"""The table of a ladder: the differences at each rung, what was predicted of the largest two, and the target."""

import math
from statistics import fmean

from etude.report.ladder import Ladder, format_compute
from etude.report.notes import Note
from etude.report.render.rows import DELTA, Cell, Column, Row, Rows
from etude.report.statistics import Decisions, find_noise
from etude.report.wording import format_count, format_fixed


def table(ladder: Ladder) -> Rows:
    """Make the table: the differences at each rung, what was predicted of the last two, and the target."""
    metric, digits, held = ladder.metric, ladder.metric.compared_digits, ladder.rungs[-len(ladder.judged) :]
    header = f"{DELTA} {metric.compared_label}"
    columns = [Column("arm", words=True), *(Column(header, rung.label) for rung in ladder.rungs)]
    columns += [Column("predicted", rung.label, breaks=n == 0) for n, rung in enumerate(held)]
    columns += [Column(header, format_compute(ladder.target), breaks=True), Column("P(sign)"), Column("compute ×")]
    rows = []
    for arm in ladder.arms:
        cells = [Cell(arm)]
        cells += [Cell(fmean(d), digits, sign=True) if d else Cell("–") for d in ladder.differences[arm]]
        for one in ladder.judged:
            found = one.predicted.get(arm)
            mark = "" if arm in one.covered else " ✗"
            cells.append(_around(found.value, found.interval.high, digits, mark) if found else Cell("–"))
        if law := ladder.laws.get(arm):
            at = law.at(ladder.target)
            cells += [_around(at.value, at.interval.high, digits), Cell(at.sign, 2)]
            factor = ladder.multiplier(arm)
            cells.append(Cell({None: "–", math.inf: "∞"}[factor]) if factor in (None, math.inf) else Cell(factor, 2))
        else:
            cells += [Cell("–")] * 3
        rows.append(Row("", cells, run=arm in ladder.laws))
    notes = [*map(Note, sentences(ladder))]
    interval = "90 % interval of a prediction"
    return Rows(ladder.name, f"{ladder.name}: the ladder", columns, rows, notes, interval=interval)


def sentences(ladder: Ladder) -> list[str]:
    """Say how predictions of held-out rungs fared, what each rung alone says, and what is said of the target."""
    better = "negative" if ladder.metric.better == "lower" else "positive"
    rungs = [(r.label, format_compute(r.x), format_count(sum(map(len, r.runs.values())))) for r in ladder.rungs]
    sizes = "; ".join(", ".join(dict.fromkeys(rung)) for rung in rungs)
    noise = find_noise(ladder.differences) or {}
    spread = math.sqrt(fmean(variance for variance, _ in noise.values()))
    digits = ladder.metric.compared_digits
    told = [
        f"{DELTA}: {ladder.metric.compared_label} less that of {ladder.baseline} at the same seeds, {better} is "
        f"better. The compute of a run is 6 × parameters × tokens ({sizes}). A difference at one "
        f"seed varies by {format_fixed(spread, digits)} from seed to seed.",
    ]
    for rung, one in zip(ladder.rungs[-len(ladder.judged) :], ladder.judged, strict=True):
        told.append(
            f"{rung.label}, held out and predicted from the rungs below the two largest: {len(one.covered)} of "
            f"{len(one.predicted)} differences came within their 90 % intervals (✗: did not); interval score "
            f"{format_fixed(one.score, digits)}, carrying the last of those rungs forward "
            f"{format_fixed(one.carried, digits)} (less is better); {_decided(one.decisions)}."
        )
    whole = sum(rung.compute for rung in ladder.rungs)
    alone = [
        f"{rung.label}, {format_fixed(100 * rung.compute / whole, 0)} % of the compute: {of.pairs - of.right} of "
        f"{of.pairs}"
        for n, rung in enumerate(ladder.rungs[:-1])
        if (of := ladder.alone(n)).pairs
    ]
    if alone:
        told.append(f"Pairs of arms that one rung alone puts in another order than the largest: {'; '.join(alone)}.")
    away = math.exp(ladder.target - ladder.x[-1])
    told.append(
        f"{format_compute(ladder.target)} is predicted: {format_fixed(away, 1)} times the compute of the largest "
        "rung. ± is half of a 90 % interval of the true difference, P(sign) the probability of its sign, compute × "
        f"how much more compute {ladder.baseline} needs there for the arm's loss."
    )
    if ladder.target - ladder.x[-1] > ladder.x[-1] - ladder.x[0]:
        told.append("The target is further from the largest rung than the smallest is: a law that bends shows there.")
    if crossing := [
        f"{arm} at {format_compute(law.crossing)}"
        for arm, law in ladder.laws.items()
        if ladder.x[-1] < law.crossing < ladder.target
    ]:
        told.append(f"The sign changes between the largest rung and the target: {', '.join(crossing)}.")
    covered = sum(len(one.covered) for one in ladder.judged)
    predicted = sum(len(one.predicted) for one in ladder.judged)
    if predicted and covered < 0.75 * predicted:
        told.append(
            "Fewer than three in four held-out differences came within their intervals: the laws bend here, and "
            "what is said of the target is worth less than its intervals say."
        )
    return [*told, *ladder.notes]


def _around(value: float, high: float, digits: int, marks: str = "") -> Cell:
    return Cell(value, digits, high - value, sign=True, marks=marks)


def _decided(of: Decisions) -> str:
    clear = f", and {of.clear_right} of the {of.clear} that are more than two standard errors apart" if of.clear else ""
    return f"{of.right} of {of.pairs} pairs of arms have the predicted order{clear}"
