"""Arms with other budgets than the baseline's, and whether what is offered really evens them out."""

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.inspect.plan.budgets import find_gaps
from etude.inspect.plan.device import Device
from etude.inspect.plan.runs import RunPlan, plan_runs

SOMEWHERE = Device("somewhere", full=1e12, half=1e12, price=1.0)
SIZES = ["model.d_model=32", "model.d_ff=96", "model.heads=4", "model.n_layers=2", "budget.max_steps=1000"]


@pytest.fixture
def planned(tmp_path):
    """Plans runs of the study called s, each with the arm's name first."""

    def make(*runs: tuple[str, ...]) -> list[RunPlan]:
        places = [f"cache_dir={tmp_path}", "study=s"]
        return plan_runs([resolve(compose([*SIZES, *places, f"arm={arm}", *rest])) for arm, *rest in runs], SOMEWHERE)

    return make


def test_the_same_budget_is_no_gap_and_the_baseline_is_none_to_itself(planned):
    base, heads, other_seed = planned(("base",), ("heads", "model.heads=2"), ("base", "seed=2"))
    assert find_gaps([(base, [base, heads, other_seed])], tolerance=0.0) == []


def test_seeds_of_one_arm_are_named_once_whether_each_has_a_baseline_or_all_have_one(planned):
    base, *wide = planned(("base",), ("wide", "model.d_ff=400"), ("wide", "model.d_ff=400", "seed=2"))
    [other] = planned(("base", "seed=2"))
    both = ["parameters", "training FLOPs"]
    assert [gap.what for gap in find_gaps([(base, wide)], tolerance=0.1)] == both
    assert [gap.what for gap in find_gaps([(base, wide[:1]), (other, wide[1:])], tolerance=0.1)] == both


def test_the_tolerance_is_a_share_of_the_baseline(planned):
    base, wide = planned(("base",), ("wide", "model.d_ff=120"))
    more = wide.parameters / base.parameters - 1
    assert not any(gap.what == "parameters" for gap in find_gaps([(base, [wide])], more * 1.01))
    assert any(gap.what == "parameters" for gap in find_gaps([(base, [wide])], more * 0.99))


@pytest.mark.parametrize(
    "arm",
    [
        ("narrow_keys", "model.d_k=2"),
        ("shallow", "model.n_layers=1"),
        ("deep", "model.n_layers=3"),
        ("gated", "model/feedforward=swiglu", "model.n_layers=3"),
        ("narrow", "model.d_model=16"),
    ],
    ids=lambda arm: arm[0],
)
def test_what_is_offered_evens_it_out(planned, arm):
    base, run = planned(("base",), arm)
    offered = {gap.what: gap.override for gap in find_gaps([(base, [run])], 0.05)}
    by_parameters, by_flops = planned((*arm, offered["parameters"]), (*arm, offered["training FLOPs"]))
    assert by_parameters.parameters == pytest.approx(base.parameters, rel=0.005)
    assert by_flops.training_flops == pytest.approx(base.training_flops, rel=0.002)


def test_nothing_is_offered_where_no_width_can_even_it_out(planned):
    base, bare, huge = planned(("base",), ("bare", "model/feedforward=none"), ("huge", "model.d_model=256"))
    gaps = find_gaps([(base, [bare, huge])], 0.1)
    assert {gap.run.name: gap.override for gap in gaps if gap.what == "parameters"} == {"s/bare": None, "s/huge": None}


def test_no_width_is_offered_to_a_network_that_has_a_width_of_its_own(planned):
    own = ("own", "model.feedforward.d_ff=32")
    base, narrow, asked = planned(("base",), own, (*own, "model.d_ff=500"))
    assert asked.parameters == narrow.parameters < 0.9 * base.parameters
    gap, _ = find_gaps([(base, [narrow])], 0.1)
    assert (gap.what, gap.override) == ("parameters", None)


def test_more_steps_are_more_flops_and_no_more_parameters(planned):
    base, long = planned(("base",), ("long", "budget.max_steps=3000"))
    (gap,) = find_gaps([(base, [long])], 0.1)
    assert (gap.what, gap.ratio, gap.override) == ("training FLOPs", 3.0, "budget.max_steps=1000")
