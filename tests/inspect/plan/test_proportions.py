"""What a training has no units for, against figures worked out by hand and the paper's own."""

import pytest

from etude.config.compose import compose
from etude.config.identity import resolve
from etude.inspect.plan.device import Device
from etude.inspect.plan.proportions import NAMES, Proportions, compute_proportions
from etude.inspect.plan.runs import plan_runs
from etude.studies.study import load_study


def of(*overrides: str, **given: float) -> Proportions:
    known = {"parameters": 1000, "tokens": 8000, "text_tokens": 2000.0, "length": 10.0} | given
    return compute_proportions(resolve(compose(overrides)), **known)  # type: ignore[arg-type]


def test_each_number_is_the_ratio_that_its_name_says():
    found = of("model.d_model=64", "model.heads=4", "budget.max_steps=1000", "budget.warmup_steps=100")
    assert found.epochs == 4
    assert found.tokens_per_parameter == 8
    assert found.unique_tokens_per_parameter == 2
    assert found.d_k_over_length == 1.6
    assert found.warmup_share == pytest.approx(0.1, abs=0.001)


def test_at_full_scale_the_schedule_is_the_papers():
    paper = load_study("table3").paper.proportions
    found = of("scale=full")
    assert found.warmup_share == pytest.approx(paper["warmup_share"], abs=0.001)
    assert found.peak_over_final_rate == pytest.approx(paper["peak_over_final_rate"], abs=0.01)


def test_the_papers_own_numbers_follow_from_what_it_prints():
    """100,000 steps of 25,000 target tokens, about 4.5 million pairs of about 28 target tokens, 65 million weights."""
    paper = load_study("table3").paper.proportions
    assert set(paper) == set(NAMES)
    found = of("scale=full", parameters=65_000_000, tokens=2_500_000_000, text_tokens=4.5e6 * 28, length=28)
    for name, value in found.items():
        assert value == pytest.approx(paper[name], rel=0.03), name


def test_a_plan_tells_them_of_every_run_and_not_what_nobody_has_counted(tmp_path):
    nowhere = ["data=files", "data.source=nowhere.en", "data.target=nowhere.de"]
    configs = [resolve(compose([f"cache_dir={tmp_path}", *text])) for text in ([], nowhere)]
    grammar, unknown = (one.proportions for one in plan_runs(configs, Device("any", full=1.0, half=1.0, price=0.0)))
    assert grammar.epochs is not None
    assert (unknown.epochs, unknown.unique_tokens_per_parameter) == (None, None)
    assert unknown.tokens_per_parameter > 0
