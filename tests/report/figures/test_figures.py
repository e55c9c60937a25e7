"""What the figures draw and tell is what was compared; the page's own tests look at them in a browser."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotly.graph_objects import Figure as PlotlyFigure

from etude.report import figures
from etude.report.comparison import Compared
from etude.report.figures.cost import _front
from etude.report.figures.figure import axis
from etude.report.render.html.data import data

Fabricate = Callable[..., Compared]
HEADS = [
    {"attention": kind, "layer": layer, "head": 1, "change": layer / 10, "interval": [0.0, 0.5], "entropy": 1.2}
    for kind in ("encoder", "cross")
    for layer in (1, 2)
]
ANALYSIS = {"seed": 1, "heads": HEADS, "order": {"perplexity": 12.4, "interval": [7.9, 11.6]}, "lengths": []}


@pytest.fixture(scope="module")
def compared(fabricate: Fabricate) -> Compared:
    return fabricate(6, 3, 60)


def points(figure: figures.Figure) -> dict[str, tuple[float, float]]:
    """The name of each mark -> where it is."""
    named = [trace for trace in figure.traces if "customdata" in trace]
    return {n: at for t in named for n, *at in zip(t["customdata"], t["x"], t["y"], strict=True)}  # type: ignore[misc]


def test_the_forest_has_the_difference_and_the_interval_of_each_arm(compared: Compared) -> None:
    drawn = figures.forest(compared, "ppl")
    assert drawn
    found = {
        arm: (x, x + up)
        for trace in drawn.traces
        for x, arm, up in zip(trace["x"], trace["y"], trace["error_x"]["array"], strict=True)
    }
    tests = {arm.arm: arm.against.differences["ppl"].test for arm in compared.arms if arm.against}
    assert found == {
        arm: pytest.approx((test.difference, test.interval and test.interval.high)) for arm, test in tests.items()
    }
    assert [row[0] for row in drawn.rows] == [*tests]


def test_each_arm_stands_at_its_cost_and_its_mean(compared: Compared) -> None:
    drawn = figures.cost(compared, "bleu", "parameters")
    assert drawn
    expected = {arm.arm: [arm.costs["parameters"], arm.means["bleu"].value] for arm in compared.arms}
    assert {arm: [*at] for arm, at in points(drawn).items()} == expected


def test_what_nobody_measured_is_not_drawn_over_what_it_cost(compared: Compared) -> None:
    arms = [replace(arm, scores={"ppl": arm.scores["ppl"]}) for arm in compared.arms]
    without = replace(compared, arms=arms)
    assert figures.cost(without, "bleu", "parameters") is None
    assert figures.cost(without, "ppl", "parameters")
    found = data(without)["figures"]["cost"]
    assert [*found["choosers"]["y"][1]] == ["ppl"]
    assert {name.split()[0] for name in found["made"]} == {"ppl"}


@given(st.dictionaries(st.text(max_size=3), st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_no_arm_beats_one_on_the_front_at_no_higher_cost(arms: dict[str, tuple[int, int]]) -> None:
    front = _front({arm: price for arm, (price, _) in arms.items()}, {arm: good for arm, (_, good) in arms.items()})
    for arm, (price, good) in arms.items():
        beaten = any(p <= price and g >= good and (p, g) != (price, good) for p, g in arms.values())
        assert (arm in front) == (not beaten)


def test_the_paper_and_ours_stand_side_by_side(compared: Compared) -> None:
    drawn, agreed = figures.order(compared, "bleu"), figures.agreement(compared)
    assert drawn
    assert agreed
    assert compared.agreement
    paper = {arm.arm: [arm.paper["bleu"], arm.means["bleu"].value] for arm in compared.arms}
    assert {arm: [*at] for arm, at in points(drawn).items()} == paper
    expected = {arm: [point.paper, point.ours] for arm, point in compared.agreement.points.items()}
    assert {arm: [*at] for arm, at in points(agreed).items()} == expected


def test_a_heat_map_for_each_kind_of_attention_and_a_table_for_each_answer() -> None:
    drawn = figures.heads("base", ANALYSIS, "change")
    assert [(trace["y"], trace["z"]) for trace in drawn.traces] == [([1, 2], [0.1, 0.2])] * 2
    assert drawn.rows[0] == ["encoder 1.1", "+0.100", "0.000 to 0.500", "1.20", "–"]
    [(_, head, rows)] = figures.probes(ANALYSIS)
    assert (head, rows) == (["perplexity", "interval"], [["12.40", "7.90 to 11.60"]])


@pytest.mark.parametrize(
    "make",
    [
        lambda compared: figures.forest(compared, "bleu"),
        lambda compared: figures.cost(compared, "ppl", "tokens"),
        lambda compared: figures.order(compared, "ppl"),
        lambda compared: figures.agreement(compared),
        lambda compared: figures.heads("base", ANALYSIS, "entropy"),
    ],
    ids=["forest", "cost", "order", "agreement", "heads"],
)
def test_a_notebook_gets_a_figure_of_plotlys(make: Any, compared: Compared) -> None:
    drawn = make(compared)
    assert isinstance(drawn.plotly(), PlotlyFigure)  # which checks every key of every trace and of the layout
    PlotlyFigure(drawn.traces, drawn.layout | drawn.narrow)
    assert drawn.label
    assert all(len(row) == len(drawn.head) for row in drawn.rows)


@given(st.lists(st.floats(1e-6, 1e18), min_size=2))
def test_an_axis_over_more_than_a_decade_is_logarithmic_with_a_tick_at_or_below_the_least(values: list[float]) -> None:
    made = axis("x", values)
    assert (made["type"] == "log") == (max(values) >= 12 * min(values))
    if made["type"] == "log":
        assert made["tickvals"][0] <= min(values) * (1 + 1e-9)


@pytest.mark.parametrize("values", [[0, 0, 0.4, 12, 25], [-5, 0.1, 3], [0], [0, 0]])
def test_an_axis_of_values_that_have_no_logarithm_is_linear(values: list[float]) -> None:
    assert axis("BLEU", values)["type"] == "linear"
