"""Samplers and pruners of Optuna's are named by a word or a node; a mistake in them is one sentence."""

import inspect
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler, CmaEsSampler, PartialFixedSampler, TPESampler

from etude.errors import UserError
from etude.search.optuna_parts import read_pruner, read_sampler

NEEDED = {
    "PercentilePruner": {"percentile": 25.0},
    "ThresholdPruner": {"upper": 9.0},
    "PatientPruner": {"wrapped_pruner": {"_target_": "median"}, "patience": 1},
    "PartialFixedSampler": {"fixed_params": {"x": 1}, "base_sampler": {"_target_": "tpe"}},
}


def all_of(module: Any, base: type) -> list[type]:
    return [one for name in module.__all__ if inspect.isclass(one := getattr(module, name)) and issubclass(one, base)]


@pytest.mark.parametrize("kind", [one for one in all_of(optuna.samplers, BaseSampler) if "Base" not in one.__name__])
@pytest.mark.parametrize("form", ["{}", "optuna.samplers.{}"])
def test_each_sampler_of_optunas_is_made(kind: type, form: str) -> None:
    sampler = read_sampler({"_target_": form.format(kind.__name__), **NEEDED.get(kind.__name__, {})}, "x.sampler")
    assert type(sampler.make(3)) is kind
    assert sampler.one_sequence == (kind.__name__ in ("QMCSampler", "GridSampler"))


@pytest.mark.parametrize("kind", [one for one in all_of(optuna.pruners, BasePruner) if one is not BasePruner])
@pytest.mark.parametrize("form", ["{}", "optuna.pruners.{}"])
def test_each_pruner_of_optunas_is_made(kind: type, form: str) -> None:
    node = {"_target_": form.format(kind.__name__), **NEEDED.get(kind.__name__, {})}
    assert type(read_pruner(node, "x.pruner")) is kind


def test_a_pruner_may_be_given_none_to_wrap() -> None:
    pruner = read_pruner({"_target_": "patient", "wrapped_pruner": None, "patience": 2}, "x.pruner")
    assert isinstance(pruner, optuna.pruners.PatientPruner)


@pytest.mark.parametrize("word", ["successive_halving", "SuccessiveHalving", "SuccessiveHalvingPruner"])
def test_a_word_is_spelt_in_any_way(word: str) -> None:
    assert isinstance(read_pruner(word, "x"), optuna.pruners.SuccessiveHalvingPruner)


def test_a_sampler_draws_what_optunas_own_draws_with_the_seed() -> None:
    def drawn(sampler: BaseSampler) -> list[float]:
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=15)
        return [trial.params["x"] for trial in study.trials]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ours = read_sampler({"_target_": "tpe", "n_startup_trials": 4}, "x").make(11)
    assert drawn(ours) == drawn(TPESampler(seed=11, n_startup_trials=4))


def test_a_sampler_within_a_sampler_has_the_seed_too() -> None:
    node = {"_target_": "cmaes", "independent_sampler": {"_target_": "random"}}
    one, other = (read_sampler(node, "x").make(5) for _ in range(2))
    assert isinstance(one, CmaEsSampler)
    assert isinstance(other, CmaEsSampler)
    assert one._independent_sampler._rng.rng.random() == other._independent_sampler._rng.rng.random()  # type: ignore[attr-defined]
    fixed = read_sampler({"_target_": "PartialFixedSampler", **NEEDED["PartialFixedSampler"]}, "x").make(5)
    assert isinstance(fixed, PartialFixedSampler)
    assert isinstance(fixed._base_sampler, TPESampler)


@pytest.mark.parametrize("word", ["motpe", "optuna.samplers.MOTPESampler"])
def test_what_an_earlier_optuna_had_is_read_with_a_word(word: str, caplog: pytest.LogCaptureFixture) -> None:
    node = {"_target_": word, "seed": None, "consider_prior": True, "n_ehvi_candidates": 24, "n_startup_trials": 2}
    assert isinstance(read_sampler(node, "x.sampler").make(1), TPESampler)
    assert "x.sampler: left out, as today's Optuna chooses it itself: consider_prior, n_ehvi_candidates" in caplog.text


def test_a_class_of_the_users_own_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_pruner.py").write_text(
        "from optuna.pruners import MedianPruner\nclass Mine(MedianPruner):\n    pass\n"
    )
    assert type(read_pruner({"_target_": "own_pruner.Mine", "n_startup_trials": 2}, "x")).__name__ == "Mine"


@pytest.mark.parametrize(
    ("read", "node", "told"),
    [
        (read_sampler, "tpee", "x: Optuna has no sampler 'tpee'; did you mean tpe?"),
        (read_sampler, 5, "x must be a word, such as tpe, or have a _target_"),
        (read_sampler, {"seed": 3}, "x must be a word, such as tpe, or have a _target_"),
        (read_sampler, {"_target_": "tpe", "seed": "a"}, "x.seed must be a whole number, not 'a'"),
        (read_sampler, {"_target_": "tpe", "gama": 1}, "x.gama is not an argument of TPESampler; did you mean gamma?"),
        (read_sampler, {"_target_": "qmc", "qmc_type": "x"}, "x: QMCSampler: The `qmc_type='x'` is invalid."),
        (read_pruner, "percentile", "x: PercentilePruner needs percentile"),
        (read_pruner, {"_target_": "percentile", "percentile": 500}, "x: PercentilePruner: Percentile must be between"),
        (read_pruner, "medan", "x: Optuna has no pruner 'medan'; did you mean median?"),
        (read_pruner, "gone.parts.Mine", "_target_: gone.parts.Mine cannot be found"),
        (
            read_pruner,
            {"_target_": "patient", "patience": 1, "wrapped_pruner": {"_target_": "MednPruner"}},
            "x.wrapped_pruner: Optuna has no pruner 'MednPruner'; did you mean median?",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(read: Any, node: Any, told: str) -> None:
    with pytest.raises(UserError) as error:
        read(node, "x")
    assert str(error.value).startswith(told)
