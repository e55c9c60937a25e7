"""What W&B keeps of a run is the run again."""

import math
from typing import Any

import pytest

from etude.report.render.wandb.fetch import config_of, result_of

CONFIG: dict[str, Any] = {
    "study": "table3",
    "seed": 1,
    "scale": {"width": 0.125, "depth": 0.5},
    "budget": {"max_steps": 20, "lr_factor": 0.6},
    "model": {"heads": 1, "attention": {"bias": False}},
    "choices": {"budget": "smoke", "model/position": "rope"},
}
BESIDE = {"environment": {"python": "3.12.1"}, "results_version": 1}
NAMED = {
    "budget": "smoke",
    "budget.max_steps": 20,
    "budget.lr_factor": 0.6,
    "scale": "pocket",
    "scale.width": 0.125,
    "scale.depth": 0.5,
}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"model/position": "rope"},
        {"budget.lr_factor": "6e-1"},
        NAMED,
        {"overrides": ["budget=smoke"], "written": "a: 1"},
    ],
    ids=["no sweep", "a group in a group", "a key", "whole sections", "beside the config"],
)
def test_a_config_comes_back_whatever_a_sweep_put_beside_it(parameters: dict[str, Any]) -> None:
    assert config_of(CONFIG | BESIDE | parameters) == CONFIG


def test_a_result_comes_back_with_its_sections_and_with_what_is_not_finite() -> None:
    summary = {
        "parameters": 7,
        "test/bleu": 31.5,
        "test/perplexity": "Infinity",
        "valid/perplexity": "NaN",
        "results_version": 1,
        "own_files/mine/norm.py": "ab",
    }
    result = result_of(summary)
    assert math.isnan(result["valid"].pop("perplexity"))
    assert result == {
        "parameters": 7,
        "test": {"bleu": 31.5, "perplexity": math.inf},
        "valid": {},
        "results_version": 1,
        "own_files": {"mine/norm.py": "ab"},
    }
