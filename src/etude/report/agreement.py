"""How far a study agrees with the paper that it reproduces: in sign, in ties, in order, and in size.

All of it in nats: what an arm's perplexity costs or gains against the baseline's, on the logarithmic scale, in which
perplexities of different texts may be set side by side.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from etude.report.significance import Against, Difference
from etude.report.statistics import Interval, Line, fit_line
from etude.studies.criteria import Criteria
from etude.studies.study import Study


@dataclass(frozen=True)
class Point:
    """An arm's difference from the baseline in ln PPL, nats a token.

    Attributes:
        arm: its name.
        paper: the paper's.
        ours: ours, the mean over seeds.
        rounding: where the paper's would lie before it was rounded.
        interval: of ours; None where it is not known.
        large: whether the paper's is large enough for its sign to count.
        agrees: whether ours has its sign; of a tie, whether ours is within the margin.
        shown: of a tie, whether a test shows that it is; of a sign, the same as `agrees`.
    """

    arm: str
    paper: float
    ours: float
    rounding: Interval
    interval: Interval | None
    large: bool
    agrees: bool
    shown: bool


@dataclass(frozen=True)
class Agreement:
    """The points of all arms that have both, and the straight line through them.

    Attributes:
        criteria: by which they are judged.
        points: by arm.
        line: ours over the paper's: Pearson's r and the slope.
    """

    criteria: Criteria
    points: dict[str, Point]
    line: Line

    @property
    def signs(self) -> tuple[int, int]:
        """How many of the large differences have the paper's sign, of how many."""
        large = [point for point in self.points.values() if point.large]
        return sum(point.agrees for point in large), len(large)

    @property
    def ties(self) -> tuple[int, int, int]:
        """How many of the ties are shown, how many lie within the margin, of how many."""
        ties = [point for point in self.points.values() if not point.large]
        return sum(point.shown for point in ties), sum(point.agrees for point in ties), len(ties)


def agreement(study: Study, found: Mapping[str, Against | None]) -> Agreement | None:
    """The agreement of a study with its paper.

    Args:
        study: with what the paper printed.
        found: each arm held against the baseline.

    Returns:
        None where the study says no criteria, or nothing can be set side by side.
    """
    printed = study.paper.arms
    lead = study.lead
    base = (printed.get(study.baseline) or {}).get(lead.name)
    if study.criteria is None or not base or not lead.is_log:
        return None
    points = {}
    for arm, held in found.items():
        theirs = (printed.get(arm) or {}).get(lead.name)
        found_there = held.differences.get(lead.name) if held and held.reference == study.baseline else None
        if theirs and found_there:
            points[arm] = _point(arm, theirs, base, 0.5 * 10**-lead.digits, found_there, study.criteria)
    if not points:
        return None
    line = fit_line({arm: point.paper for arm, point in points.items()}, {arm: p.ours for arm, p in points.items()})
    return Agreement(study.criteria, points, line)


def _point(arm: str, theirs: float, base: float, half: float, held: Difference, criteria: Criteria) -> Point:
    """`half`: of the last digit that the paper prints."""
    paper, ours = math.log(theirs / base), held.test.difference
    rounding = Interval(math.log((theirs - half) / (base + half)), math.log((theirs + half) / (base - half)))
    large = abs(paper) > criteria.large
    agrees = ours * paper > 0 if large else abs(ours) < criteria.margin
    return Point(arm, paper, ours, rounding, held.test.interval, large, agrees, agrees if large else held.tied)
