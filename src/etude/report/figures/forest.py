"""The forest plot: the difference of each arm from its reference, with how sure it is."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from etude.report.comparison import ALPHA, BUDGET, TOLERANCE, ArmResult, Compared, Difference
from etude.report.figures.figure import (
    COLOUR,
    UNKNOWN,
    Figure,
    Layout,
    axis,
    error_bars,
    extent,
    format_ends,
    format_known,
)
from etude.report.statistics import Interval
from etude.study.metrics import Metric

_REASONS = 3  # why arms are not tested, at most; the notes below the table say all
_HEAD = "arm,difference,95 % interval,of,p after Holm,p over sentences,p by exchange,Hedges’ g,p of a tie,budget"


class _Mark(NamedTuple):
    """The difference of an arm, and its interval."""

    arm: ArmResult
    reference: str
    found: Difference
    interval: Interval | None  # over seeds; if that is not known, over sentences alone

    @property
    def of_sentences(self) -> bool:
        """Whether the interval says nothing of other seeds."""
        return self.interval is not None and self.found.test.interval is None


def forest(compared: Compared, metric: str) -> Figure | None:
    """Draw the difference of each arm by one metric; None if no arm has any."""
    found = [_mark(arm, metric) for arm in compared.arms if arm.against and metric in arm.against.differences]
    if not found:
        return None
    of, baseline = compared.study.metrics[metric], compared.baseline.arm
    digits, what = 3 if of.is_log else of.digits + 1, name_compared(of)
    elsewhere = [mark for mark in found if mark.reference != baseline]
    reference = "the arm it is held against" if elsewhere else baseline
    seeds = "seeds and sentences" if of.sentences else "seeds"
    ends = [end for mark in found for end in (mark.found.test.difference, *(mark.interval or ()))]
    names = [mark.arm.arm for mark in found]
    title = f"difference of {what}, arm − {reference}"
    layout: Layout = {
        "height": 90 + 24 * len(found),
        "xaxis": axis(title, zeroline=True, zerolinewidth=2, range=extent([0, *ends])),
        "yaxis": axis(
            "",
            type="category",
            categoryorder="array",
            categoryarray=names[::-1],
            range=[-0.7, len(found) - 0.3],
            fixedrange=True,
            dtick=1,
        ),
    }
    stacked = layout["xaxis"] | {"title": {"text": title.replace(", ", ",<br>"), "standoff": 8}}
    kinds: list[tuple[str, Callable[[_Mark], bool], dict[str, Any]]] = [
        ("circle", lambda mark: mark.found.star, {"thickness": 2, "width": 5}),
        ("circle-open", lambda mark: not mark.found.star and not mark.of_sentences, {"thickness": 2, "width": 5}),
        ("diamond-open", lambda mark: mark.of_sentences and not mark.found.star, {}),
    ]
    return Figure(
        [_trace([mark for mark in found if which(mark)], symbol, digits, bar) for symbol, which, bar in kinds],
        layout,
        f"Difference of {what} to {reference} for {len(found)} arms, with intervals",
        _caption(found, of, compared, seeds),
        _HEAD.split(","),
        [_row(mark, digits, seeds, compared) for mark in found],
        narrow={"height": layout["height"] + 36, "xaxis": stacked},
    )


def name_compared(metric: Metric) -> str:
    """Name what is compared of a metric, with its unit: "ln PPL, nats a token"."""
    return metric.compared_label + (f", nats{' a token' * (metric.over == 'tokens')}" if metric.is_log else "")


def describe_budget(compared: Compared, arm: ArmResult) -> str:
    """Say how the budget of an arm compares with the baseline's, as far as it is known of both."""
    if arm.arm == compared.baseline.arm:
        return "the same" if arm.runs else UNKNOWN
    if arm.budget_differs:
        return ", ".join(arm.budget_differs)
    base = compared.baseline.costs if compared.baseline.runs else {}
    alike = [name for key, name in BUDGET.items() if arm.costs.get(key) is not None and base.get(key) is not None]
    return f"within {100 * TOLERANCE:.0f} %: {', '.join(alike)}" if alike else UNKNOWN


def _mark(arm: ArmResult, metric: str) -> _Mark:
    assert arm.against
    found = arm.against.differences[metric]
    over_sentences = found.bootstrap.interval if found.bootstrap else None
    return _Mark(arm, arm.against.reference, found, found.test.interval or over_sentences)


def _trace(marks: Sequence[_Mark], symbol: str, digits: int, bar: dict[str, Any]) -> dict[str, Any]:
    differences = [mark.found.test.difference for mark in marks]
    known = {"error_x": error_bars(differences, [mark.interval for mark in marks], **bar)}
    return {
        "x": differences,
        "y": [mark.arm.arm for mark in marks],
        "mode": "markers",
        "marker": {"symbol": symbol, "size": 10, "color": COLOUR, "line": {"width": 1.5, "color": COLOUR}},
        "customdata": [[format_ends(mark.interval, digits), ", significant" * mark.found.star] for mark in marks],
        "hovertemplate": f"%{{y}}: %{{x:+.{digits}f}} (%{{customdata[0]}})%{{customdata[1]}}<extra></extra>",
    } | ({} if marks and not any(mark.interval for mark in marks) else known)


def _caption(marks: Sequence[_Mark], metric: Metric, compared: Compared, seeds: str) -> str:
    baseline = compared.baseline.arm
    elsewhere = [f"{mark.arm.arm} against {mark.reference}" for mark in marks if mark.reference != baseline]
    untested = dict.fromkeys(mark.found.test.why_not for mark in marks if mark.found.test.why_not)
    sentences = [f"Better is to the {'right' if metric.better == 'higher' else 'left'}."]
    if elsewhere:
        sentences.append(f"Held against another than {baseline}: {', '.join(elsewhere)}.")
    if any(mark.found.holm is not None for mark in marks):
        sentences.append(f"A filled mark: significant at {ALPHA} after {compared.correction}.")
        sentences.append(f"The interval of 95 % is over {seeds}.")
    if any(mark.of_sentences for mark in marks):
        sentences.append(
            "A diamond with a thin line: the interval is over sentences alone and says nothing of other seeds."
        )
    if untested:
        sentences.append(f"Not tested: {'; '.join([*untested][:_REASONS])}.")
    return " ".join(sentences)


def _row(mark: _Mark, digits: int, seeds: str, compared: Compared) -> list[str]:
    found = mark.found
    return [
        mark.arm.arm,
        format_known(found.test.difference, digits, sign=True) + " *" * found.star,
        format_ends(mark.interval, digits),
        ("sentences" if mark.of_sentences else seeds) if mark.interval else UNKNOWN,
        _chance(found.holm),
        _chance(found.bootstrap.p if found.bootstrap else None),
        _chance(found.randomisation),
        format_known(found.hedges_g, 2),
        _chance(found.tie),
        describe_budget(compared, mark.arm),
    ]


def _chance(p: float | None) -> str:
    return "< 0.0001" if p is not None and p < 0.0001 else format_known(p, 4)
