"""What a search cannot do is said before it begins."""

from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from optuna.pruners import MedianPruner

from etude.errors import UserError
from etude.search.cautions import cautions
from etude.search.distributions import read_distribution
from etude.search.hyperband import Hyperband
from etude.search.search import Objective, Promotion, Search

PERPLEXITY = Objective("valid_perplexity")


def search(objective: Objective = PERPLEXITY, key: str = "model.dropout", **more: Any) -> Search:
    space = {key: read_distribution({"min": 0.0, "max": 1.0}, key).dimension()}
    return Search("s", "s.yaml", (), space, (objective,), 5, sampler=lambda seed: pytest.fail("asked"), **more)


def config(validations: int) -> DictConfig:
    return OmegaConf.create({"budget": {"max_steps": 10 * validations + 3, "val_every": 10}})


@pytest.mark.parametrize(
    ("rule", "validations", "band"),
    [
        (Hyperband(min_iter=3), 2, 3),
        (Hyperband(min_iter=3), 3, None),
        (Hyperband(max_iter=27, s=2), 8, 9),
        (Hyperband(max_iter=27, s=2), 9, None),
    ],
)
def test_a_band_beyond_the_budget_is_told(rule: Hyperband, validations: int, band: int | None) -> None:
    told = [*cautions(search(stopping=rule), config(validations))]
    expected = f"early_terminate stops no trial at validation {band}, as budget.max_steps and budget.val_every make "
    assert told == ([f"{expected}{validations} of them"] if band else [])


def test_a_pruner_is_refused_where_there_is_no_validation() -> None:
    rule = MedianPruner()
    with pytest.raises(UserError, match=r"^s.yaml: no validation .* budget.val_every=10 is beyond budget.max_steps=3"):
        [*cautions(search(stopping=rule), config(0))]
    assert not [*cautions(search(stopping=rule, seeds=(1, 2, 3)), config(0))]  # which are judged by their ends


@pytest.mark.parametrize("key", ["budget.steps", "budget", "++budget.val_every", "scale"])
def test_nothing_is_said_of_a_budget_that_is_searched(key: str) -> None:
    assert not [*cautions(search(key=key, stopping=Hyperband(min_iter=3)), config(1))]


@pytest.mark.parametrize("more", [{"stopping": MedianPruner()}, {"promotion": Promotion()}])
@pytest.mark.parametrize("name", ["test.bleu", "test/perplexity", "parameters", "valid.accuracy"])
def test_a_metric_of_the_end_stops_nothing(name: str, more: dict[str, Any]) -> None:
    [told] = cautions(search(Objective(name, maximize=True), **more), config(9))
    assert told == f"{name} is known only when a run has ended, so that no trial is stopped or promoted by it"


@pytest.mark.parametrize("name", ["valid.perplexity", "valid_loss", "valid/perplexity", "loss"])
def test_a_metric_of_the_validations_does(name: str) -> None:
    assert not [*cautions(search(Objective(name), stopping=MedianPruner()), config(9))]


def test_so_does_a_metric_of_translations_that_validations_compute() -> None:
    validated = config(9)
    validated.budget.val_metrics = ["bleu"]
    assert not [*cautions(search(Objective("valid.bleu", maximize=True), stopping=MedianPruner()), validated)]
    [told] = cautions(search(Objective("valid.chrf", maximize=True), stopping=MedianPruner()), validated)
    assert "known only when a run has ended" in told


@pytest.mark.parametrize(
    ("name", "rises"),
    [
        ("test.bleu", True),
        ("test/bleu", True),
        ("test_accuracy", True),
        ("bracket_f1", True),
        ("test.perplexity", False),
    ],
)
def test_what_is_better_the_higher_should_be_maximised(name: str, rises: bool) -> None:
    told = [*cautions(search(Objective(name)), config(9))]
    assert told == [f"{name} is minimised, and it is better the higher: say maximize"] * rises
    assert not [*cautions(search(Objective(name, maximize=True)), config(9))]
