"""A sweep file of W&B's that asks for trials is a search; with a list of runs, its trials are those of the list."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from optuna.samplers import GPSampler, TPESampler

from etude.config.compose import compose
from etude.config.quoting import quote_for
from etude.errors import UserError
from etude.search.hyperband import Hyperband
from etude.search.search import Objective, Promotion, Search
from etude.search.sweep_file import planned_runs, sweep_overrides
from etude.search.wandb_search import wandb_search

RATE = {"budget.lr_factor": {"distribution": "log_uniform_values", "min": 0.1, "max": 4.0}}
HYPERBAND = {"type": "hyperband", "min_iter": 3}


def write(path: Path, parameters: Any = RATE, **more: Any) -> str:
    path.write_text(yaml.safe_dump({"method": "random", "run_cap": 6, "parameters": parameters} | more))
    return str(path)


def read(file: str, typed: Sequence[str] = ()) -> Search:
    """The search of a file, asked for by what the command line hands to the sweeper."""
    words = sweep_overrides(file, typed)
    node = compose([word for word in words if word.startswith("hydra")]).hydra.sweeper
    others = [word for word in words if not word.startswith("hydra")]
    search = wandb_search(Path(node.file), others, run_cap=node.run_cap, search_seed=node.search_seed)
    assert search is not None
    return search


def asked(search: Search, trials: int) -> list[list[str]]:
    """The overrides of the first trials that the sampler gives."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study()
    found = []
    for number in range(trials):
        study.sampler = search.sampler(number)
        trial = study.ask({key: one.distribution for key, one in search.space.items()})
        values = {key: one.convert(trial.params[key]) for key, one in search.space.items()}
        found.append([*search.fixed, *(f"{key}={quote_for(key, value)}" for key, value in values.items())])
        study.tell(trial, float(number))
    return found


def words(runs: Sequence[Sequence[str]]) -> list[set[str]]:
    return [{*run} for run in runs]


PARAMETERS = {
    **RATE,
    "model.dropout": {"distribution": "beta", "a": 2, "b": 10},
    "budget.warmup_steps": {"distribution": "q_log_normal", "mu": 1.0, "sigma": 0.3, "q": 1},
    "model/norm": {"values": ["layer", "rms"], "probabilities": [0.3, 0.7]},
    "metrics": {"values": [["bleu"], ["bleu", "chrf"]]},
    "model.d_k": {"values": [None, 8]},
    "callbacks": {"values": [None, "ema"]},
    "seed": {"value": 3},
}


@pytest.mark.parametrize("more", [{"early_terminate": HYPERBAND}, {"search": {}}])
@pytest.mark.parametrize("typed", [[], ["seed=1,2", "model.heads=1,2", "search_seed=5"]])
def test_random_trials_are_the_runs_of_the_list(more: dict[str, Any], typed: list[str], tmp_path: Path) -> None:
    search = read(write(tmp_path / "s.yaml", PARAMETERS, **more), typed)
    runs = planned_runs(write(tmp_path / "plain.yaml", PARAMETERS), typed)
    assert search.n_trials == len(runs) == 6
    assert search.one_sequence
    assert words(asked(search, 6)) == words(runs)


@pytest.mark.parametrize(("cap", "trials"), [(None, 12), (5, 5), (50, 12)])
def test_a_grid_that_is_stopped_early_asks_for_its_combinations_in_order(
    cap: int | None, trials: int, tmp_path: Path
) -> None:
    parameters = {
        "model.heads": {"values": [1, 2, 4]},
        "model/norm": {"values": ["layer", "rms"]},
        "metrics": {"values": [["bleu"], ["bleu", "chrf"]]},
        "seed": {"value": 3},
    }
    capped = {"run_cap": cap} if cap else {}
    content = {"method": "grid", "parameters": parameters, "early_terminate": HYPERBAND, **capped}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    search = read(str(tmp_path / "s.yaml"))
    assert search.n_trials == trials
    combinations = product([1, 2, 4], ["layer", "rms"], ["[bleu]", "[bleu,chrf]"])
    assert words(asked(search, 12)) == [
        {f"model.heads={heads}", f"model/norm={norm}", f"metrics={metrics}", "seed=3"}
        for heads, norm, metrics in combinations
    ]


def test_bayes_is_a_gaussian_process_on_the_best_of_each_run(tmp_path: Path) -> None:
    metric = {"name": "valid.perplexity", "goal": "minimize", "impute": "latest", "impute_while_running": "best"}
    search = read(write(tmp_path / "s.yaml", method="bayes", metric=metric), ["search_seed=4", "model.heads=2"])
    assert isinstance(search.sampler(1), GPSampler)
    assert search.best_of_curve
    assert (search.seed, search.fixed, search.n_trials) == (4, ("model.heads=2",), 6)
    assert (search.impute, search.impute_while_running) == ("latest", "best")
    assert search.objectives == (Objective("valid.perplexity"),)


def test_the_value_of_a_file_that_names_no_metric_is_the_validation_perplexity(tmp_path: Path) -> None:
    assert read(write(tmp_path / "s.yaml", search={})).objectives == (Objective("valid.perplexity"),)


def test_a_file_without_a_rule_is_a_list_of_runs(tmp_path: Path) -> None:
    assert wandb_search(Path(write(tmp_path / "s.yaml")), [], run_cap=6) is None


def test_what_is_typed_takes_the_place_of_what_is_drawn(tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", PARAMETERS, method="bayes")
    search = read(file, ["++budget.lr_factor=0.5", "model.heads=1,2", "run_cap=9"])
    assert "budget.lr_factor" not in search.space
    assert search.space["model.heads"].distribution == optuna.distributions.CategoricalDistribution([1, 2])
    assert {"++budget.lr_factor=0.5", "seed=3"} <= {*search.fixed}
    assert search.n_trials == 9


@pytest.mark.parametrize(
    ("block", "typed", "seeds"),
    [
        ({}, ["seed=5,6,9"], (5, 6, 9)),
        ({"seeds": 3}, [], (1, 2, 3)),
        ({"seeds": 2}, ["seed=7"], (7, 8)),
        ({}, ["seed=7"], ()),
    ],
)
def test_a_trial_of_a_sampler_is_the_mean_of_its_seeds_and_run_cap_counts_runs(
    block: dict[str, Any], typed: list[str], seeds: tuple[int, ...], tmp_path: Path
) -> None:
    search = read(write(tmp_path / "s.yaml", method="bayes", search=block), typed)
    assert search.seeds == seeds
    assert search.n_trials == 6 // max(1, len(seeds))
    assert (not any("seed" in word for word in search.fixed)) == bool(seeds or not typed)
    assert [*search.space] == ["budget.lr_factor"]


def test_the_block_says_what_wandb_has_no_word_for(tmp_path: Path) -> None:
    block = {
        "sampler": {"_target_": "TPESampler", "n_startup_trials": 3, "seed": 11},
        "manner": "promote",
        "rungs": ["1/16", 0.25, 1],
        "eta": 4,
        "constraints": {"parameters": 100000},
        "n_jobs": 2,
    }
    search = read(write(tmp_path / "s.yaml", search=block))
    assert isinstance(search.sampler(1), TPESampler)
    assert search.promotion == Promotion((1 / 16, 1 / 4, 1.0), 4)
    assert (search.seed, search.n_jobs, search.constraints) == (11, 2, {"parameters": 100000})
    assert not search.best_of_curve


def test_promotion_takes_the_place_of_wandbs_hyperband(tmp_path: Path) -> None:
    both = read(write(tmp_path / "s.yaml", early_terminate=HYPERBAND, search={"manner": "promote", "eta": 2}))
    assert both.stopping is None
    assert both.promotion == Promotion((1 / 4, 1 / 2, 1.0), 2)
    assert read(write(tmp_path / "s.yaml", early_terminate=HYPERBAND)).stopping == Hyperband(min_iter=3)


def test_directions_are_further_objectives(tmp_path: Path) -> None:
    block = {"sampler": "nsgaii", "directions": {"test.bleu": "maximize", "parameters": "minimize"}}
    metric = {"name": "test.bleu", "goal": "maximize"}
    search = read(write(tmp_path / "s.yaml", search=block, metric=metric))
    assert search.objectives == (Objective("test.bleu", maximize=True), Objective("parameters"))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"search": {"sampler": "tpee"}}, r"search\.sampler: Optuna has no sampler 'tpee'; did you mean tpe\?"),
        ({"search": {"sampler": "grid"}}, r"search\.sampler: method: grid lists its values"),
        (
            {"method": "grid", "search": {"sampler": "tpe"}, "parameters": {"seed": {"value": 1}}},
            r"search\.sampler: method: grid lists its values",
        ),
        ({"search": {"pruner": "medan"}}, r"search\.pruner: Optuna has no pruner 'medan'; did you mean median\?"),
        (
            {"search": {"pruner": "median"}, "early_terminate": HYPERBAND},
            r"search\.pruner and early_terminate both stop trials",
        ),
        ({"search": {"manner": "stop"}}, r"search\.manner: stop needs early_terminate, or a pruner"),
        ({"search": {"manner": "halve"}}, r"search\.manner is 'halve': write stop or promote"),
        ({"search": {"mannner": "stop"}}, r"search\.mannner is not a key of it; did you mean manner\?"),
        ({"search": {"manner": "promote", "rungs": [1 / 3, 1 / 9, 1]}}, r"search\.rungs must ascend"),
        ({"search": {"manner": "promote", "rungs": [1 / 9, 1 / 3]}}, r"search\.rungs must ascend from above 0 to 1"),
        ({"search": {"manner": "promote", "rungs": "third"}}, r"search\.rungs must be a list of shares"),
        ({"search": {"rungs": [1]}}, r"search\.rungs goes with manner: promote"),
        ({"search": {"seeds": 2}, "parameters": {"seed": {"values": [1, 2]}, **RATE}}, r"search\.seeds and parameters"),
        (
            {
                "search": {"directions": {"test.bleu": "minimize"}},
                "metric": {"name": "test.bleu", "goal": "maximize"},
            },
            r"search\.directions and metric\.goal differ on test\.bleu",
        ),
        (
            {"search": {"directions": {"test.bleu": "maximize", "parameters": "minimize"}, "seeds": 2}},
            r"a trial that is the mean of the seeds 1, 2 has one objective, not parameters, test\.bleu: name one",
        ),
        (
            {"search": {"directions": {"test.bleu": "maximize", "parameters": "minimize"}, "pruner": "median"}},
            r"with several objectives \(parameters, test\.bleu\) no trial is the best",
        ),
        ({"early_terminate": {"type": "envelope"}}, r"early_terminate must be"),
        ({"metric": {"name": "valid.perplexity", "target": "low"}}, r"metric\.target must be a number, not 'low'"),
        ({"metric": {"name": "valid.perplexity", "impute": "mean"}}, r"metric\.impute is 'mean': write best, worst"),
        ({"parameters": {"budget.lr_factor": {"min": 2.0, "max": 1.0}}}, r"lr_factor\.min=2\.0 is above its max"),
        (
            {"parameters": {"budget.lr_factor": {"distribution": "log_uniform_values", "min": 0, "max": 1}}},
            r"parameters\.budget\.lr_factor\.min must be above 0",
        ),
    ],
)
def test_what_cannot_be_searched_is_one_sentence_with_file_and_key(
    more: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"s\.yaml: (parameters\.budget\.)?{told}"):
        read(write(tmp_path / "s.yaml", **({"search": {}} | more)))


def test_a_search_does_not_say_twice_that_a_class_is_experimental(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    read(write(tmp_path / "s.yaml", method="bayes")).sampler(1)
    assert not [*recwarn]
