"""Hyperband stops what W&B's would, by a second reading of its rule."""

import math
import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UserError
from etude.search.hyperband import Hyperband, read_hyperband

values = st.one_of(st.integers(0, 4).map(float), st.just(math.nan), st.just(math.inf))
curves = st.lists(values, max_size=14)
rules = st.one_of(
    st.builds(Hyperband, min_iter=st.integers(1, 4), eta=st.integers(2, 4), strict=st.booleans()),
    st.builds(Hyperband, max_iter=st.integers(8, 30), s=st.integers(1, 3), eta=st.integers(2, 3), strict=st.booleans()),
)


def as_curve(numbers: list[float], every: int = 1) -> dict[int, float]:
    return {every * (place + 1): number for place, number in enumerate(numbers)}


def stopped_by_the_text(rule: Hyperband, own: list[float], others: list[list[float]], *, maximize: bool) -> bool:
    """The rule as it is written down, counted out: with a loss, which is better the lower."""
    losses = [[-x if maximize else x for x in one if math.isfinite(x)] for one in (own, *others)]
    if rule.max_iter:
        bands = {int(rule.max_iter / rule.eta**k) for k in range(1, rule.s + 1)} - {0}
    else:
        bands = {int((rule.min_iter or 0) * rule.eta**k) for k in range(9)}
    passed = [band for band in bands if band <= len(losses[0])]
    if not passed:
        return False
    band = max(passed)
    seen = sorted(loss[band - 1] for loss in losses if len(loss) >= band)
    threshold = seen[int(len(seen) / rule.eta)]
    return (losses[0][band - 1] if rule.strict else min(losses[0])) > threshold


@given(rules, curves, st.lists(curves, max_size=8), st.booleans())
def test_a_trial_is_stopped_as_the_text_says(
    rule: Hyperband, own: list[float], others: list[list[float]], maximize: bool
) -> None:
    stops = rule.stops(as_curve(own), [as_curve(one, every=3) for one in others], maximize=maximize)
    assert stops == stopped_by_the_text(rule, own, others, maximize=maximize)


@given(rules, curves, st.lists(curves, max_size=8))
def test_a_metric_that_rises_is_judged_as_its_negative_that_falls(
    rule: Hyperband, own: list[float], others: list[list[float]]
) -> None:
    turned = [as_curve([-value for value in one]) for one in (own, *others)]
    rising = rule.stops(turned[0], turned[1:], maximize=True)
    assert rising == rule.stops(as_curve(own), [as_curve(one) for one in others], maximize=False)


def test_the_example_of_wandb_stops_the_one_that_it_stops() -> None:
    """From its documentation: b is stopped, c passes the first band and d both."""
    rule = Hyperband(max_iter=5, s=2, eta=2)
    runs = {"a": [10, 9], "b": [10, 10], "c": [10, 8, 8], "d": [10, 7, 7], "e": [10, 6, 6]}
    curves = {name: as_curve([*map(float, numbers)]) for name, numbers in runs.items()}
    stopped = [
        name
        for name in ("b", "c", "d")
        if rule.stops(curves[name], [curves[other] for other in runs if other != name], maximize=False)
    ]
    assert stopped == ["b"]


@pytest.mark.parametrize(
    ("rule", "bands"),
    [
        (Hyperband(min_iter=3, eta=3), [3, 9, 27, 81]),
        (Hyperband(max_iter=27, s=2, eta=3), [3, 9]),
        (Hyperband(max_iter=27, s=9, eta=3), [1, 3, 9]),
        (Hyperband(max_iter=8, s=2, eta=2), [2, 4]),
        (Hyperband(min_iter=3, max_iter=20, s=1, eta=3), [6]),  # max_iter wins
    ],
)
def test_bands_are_those_of_wandb(rule: Hyperband, bands: list[int]) -> None:
    assert [*islice(rule.bands(), 4)] == bands


def test_the_best_so_far_or_the_value_at_the_band_is_judged() -> None:
    recovered, others = as_curve([5.0, 1.0]), [as_curve([2.0]), as_curve([3.0])]
    assert Hyperband(min_iter=1, eta=3, strict=True).stops(recovered, others, maximize=False)
    assert not Hyperband(min_iter=1, eta=3, strict=False).stops(recovered, others, maximize=False)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (Hyperband(min_iter=3), "Hyperband at validation 3, 9, 27, 81, ... compares the value there (strict: true)"),
        (
            Hyperband(max_iter=9, s=2, strict=False),
            "Hyperband at validation 1, 3 compares the best value so far (strict: false)",
        ),
    ],
)
def test_it_says_what_is_compared(rule: Hyperband, told: str) -> None:
    assert str(rule) == told


def test_a_file_that_does_not_say_is_strict_as_wandb_fills_it_in() -> None:
    assert read_hyperband({"type": "hyperband", "min_iter": 3}, "early_terminate") == Hyperband(min_iter=3, strict=True)


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ("hyperband", "must be {type: hyperband, min_iter: 3}"),
        ({"type": "envelope", "min_iter": 3}, "must be {type: hyperband"),
        ({"type": "hyperband"}, "needs min_iter, the validations before the first band; or max_iter and s"),
        ({"type": "hyperband", "max_iter": 9}, "max_iter needs s"),
        ({"type": "hyperband", "min_iter": 0}, "min_iter must be a whole number, 1 or more, not 0"),
        ({"type": "hyperband", "min_iter": 3, "eta": 1}, "eta must be a number above 1, not 1"),
        ({"type": "hyperband", "min_iter": 3, "strict": "yes"}, "strict must be true or false, not 'yes'"),
        ({"type": "hyperband", "max_iter": 3, "s": 0}, "has no band"),
        ({"type": "hyperband", "min_itr": 3}, "min_itr is not a key of hyperband; did you mean min_iter"),
    ],
)
def test_what_is_no_hyperband_is_refused(node: object, told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        read_hyperband(node, "s.yaml: early_terminate")
