"""Studies whose seeds are added until an arm is decided (`seeds: {least: 2, most: 8, until: decided}`).

An arm is looked at with its first 2, 3, ... seeds, beside as many of the baseline's, and all arms tell how far seeds
vary. The first look that decides counts: the arm has a star, or is shown to be a tie. What p a look asks for follows
from how many looks there may be (`statistics.sequential`), and for a star from the number of arms, too (Bonferroni).

So that a table reads as any other, p is corrected as it is for the number of arms: multiplied, such that it is below
ALPHA where the look decides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from etude.report import statistics as st
from etude.report.comparison import ALPHA, Against, Compared, Difference
from etude.report.wording import name_arms
from etude.store.records import Run
from etude.study.criteria import UntilDecided
from etude.study.study import Study

Tests = Mapping[str, Against]


def test_until_decided(
    study: Study, runs: Sequence[Run], tests: Tests, test: Callable[[Study, list[Run]], Tests]
) -> dict[str, Against]:
    """Correct the tests of the arms for the looks at them; of the metric that decides, the look that decided counts.

    The difference and its interval are those of all seeds, as the means beside them.

    Args:
        study: a study with `until_decided`.
        runs: all runs.
        tests: of all runs, by arm.
        test: tests the arms of a study by some runs.
    """
    plan = study.until_decided
    assert plan is not None
    stars, ties = levels(plan, max(1, len(study.arms) - 1))
    lead, seeds = study.lead.name, study.judged_seeds(plan.most)
    alone = replace(study, seeds=None, metrics={lead: study.lead})
    having = {arm: {run.seed for run in runs if run.arm == arm} for arm in study.arms}
    decided: dict[str, Difference] = {}
    for look, number in enumerate(range(plan.least, plan.most + 1)):
        first = set(seeds[:number])
        looked_at = [arm for arm in tests if first <= having[arm] & having[study.reference(arm)]]
        open_arms = [arm for arm in looked_at if arm not in decided or not _is_decided(decided[arm])]
        if not open_arms:
            continue
        found = test(alone, [run for run in runs if run.seed in first])
        for arm in open_arms:
            if arm in found and lead in found[arm].differences:
                decided[arm] = _corrected(found[arm].differences[lead], stars[look], ties[look])

    def correct(arm: str, against: Against) -> Against:
        look = min(len(having[arm]), plan.most) - plan.least
        corrected = {
            name: _corrected(one, stars[look], ties[look]) if look >= 0 else replace(one, holm=None, tie=None)
            for name, one in against.differences.items()
        }
        shown = against.differences.get(lead)
        if arm in decided and shown and not shown.test.why_not:  # such as a run that diverged since
            look_at = decided[arm]
            test = replace(shown.test, p=look_at.test.p, why_not=look_at.test.why_not)
            corrected[lead] = replace(shown, test=test, holm=look_at.holm, tie=look_at.tie)
        return replace(against, differences=corrected)

    return {arm: correct(arm, against) for arm, against in tests.items()}


def levels(plan: UntilDecided, arms: int) -> tuple[list[float], list[float]]:
    """Return the p that each look asks of a star, and of a tie, for so many arms beside the baseline."""
    shares = [number / plan.most for number in range(plan.least, plan.most + 1)]
    return st.nominal_levels(shares, ALPHA / arms, sides=2), st.nominal_levels(shares, ALPHA, sides=1)


def _corrected(found: Difference, star: float, tie: float) -> Difference:
    def correct(p: float | None, level: float) -> float | None:
        return None if p is None else min(1.0, p * ALPHA / level)

    return replace(found, holm=correct(found.test.p, star), tie=correct(found.tie, tie))


def _is_decided(difference: Difference | None) -> bool:
    return difference is not None and (difference.star or difference.tied)


def not_decided(compared: Compared) -> list[str]:
    """Return the arms that the metric which decides has not decided; the baseline is none."""
    lead = compared.study.lead.name
    return [
        arm.arm
        for arm in compared.arms
        if arm.arm != compared.study.baseline
        and not _is_decided(arm.against.differences.get(lead) if arm.against else None)
    ]


def on_looks(compared: Compared) -> list[str]:
    """Say how many seeds each arm had, and which are not decided."""
    plan = compared.study.until_decided
    if plan is None:
        return []
    by_number: dict[int, list[str]] = {}
    for arm in compared.arms:
        if arm.runs or arm.diverged:
            by_number.setdefault(len(arm.runs) + len(arm.diverged), []).append(arm.arm)
    numbers = "; ".join(f"{number} of {', '.join(arms)}" for number, arms in sorted(by_number.items()))
    left = not_decided(compared)
    return [
        f"Seeds were added until {compared.study.lead.compared_label} decided, {plan.least} to {plan.most} of an arm: "
        f"{numbers}. Not decided: {name_arms(left, len(compared.arms) - 1, 'all arms') if left else 'none'}."
    ]
