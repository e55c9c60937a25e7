"""What is typed for hydra/sweeper=optuna, or stands in files for hydra-optuna-sweeper, is a search."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import CmaEsSampler, GPSampler, NSGAIISampler, QMCSampler, RandomSampler, TPESampler

from etude.cli.main import main
from etude.search.hydra_search import _name, write_results
from etude.search.search import Objective, Promotion, Search

from .conftest import Given

RATE = "budget.lr_factor=tag(log,interval(0.25,4))"
OPTUNA = ["-m", "hydra/sweeper=optuna"]


@pytest.fixture
def searched(given: Given, tmp_path: Path) -> Callable[..., Search]:
    """Runs `etude train` and returns the search that the launcher is given; files are put into `conf/search`."""

    def run(*words: str, **files: str) -> Search:
        for name, content in files.items():
            file = tmp_path / "conf/search" / f"{name}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"# @package _global_\n{content}\n")
        with pytest.raises(SystemExit, match="0"):
            main(["train", *words])
        [search] = given
        assert isinstance(search, Search)
        return search

    return run


def spaces(search: Search) -> dict[str, Any]:
    return {key: one.distribution for key, one in search.space.items()}


def test_a_search_is_typed_in_one_line(searched: Callable[..., Search]) -> None:
    search = searched(*OPTUNA, "hydra.sweeper.n_trials=7", RATE, "model.heads=2", "model.dropout=0.1,0.2")
    assert spaces(search) == {
        "budget.lr_factor": FloatDistribution(0.25, 4.0, log=True),
        "model.dropout": CategoricalDistribution([0.1, 0.2]),
    }
    assert search.fixed == ("model.heads=2",)
    assert (search.n_trials, search.n_jobs, search.seed, search.further) == (7, None, 1, False)
    assert search.objectives == (Objective("valid.perplexity"),)
    assert isinstance(search.sampler(1), TPESampler)


HYDRAS_WORDS = {
    "interval(1,4)": FloatDistribution(1.0, 4.0),
    "int(interval(1,4))": IntDistribution(1, 4),
    "tag(log,int(interval(1,64)))": IntDistribution(1, 64, log=True),
    "range(1,7,step=2)": IntDistribution(1, 7, step=2),  # with its stop
    "range(0.0,0.3,step=0.1)": FloatDistribution(0.0, 0.3, step=0.1),
    "1,2": CategoricalDistribution([1, 2]),
    "4,null,true": CategoricalDistribution([4, None, True]),
    "choice(4,8)": CategoricalDistribution([4, 8]),
    "shuffle(range(1,4))": CategoricalDistribution([1, 2, 3]),
}


def test_hydras_words_are_distributions(searched: Callable[..., Search]) -> None:
    keys = [f"model.{key}" for key in ("d_model", "d_ff", "d_k", "d_v", "heads", "n_layers", "dropout")]
    keys += ["budget.max_steps", "budget.val_every"]
    typed = dict(zip(keys, HYDRAS_WORDS, strict=True))
    found = spaces(searched(*OPTUNA, *(f"{key}={word}" for key, word in typed.items())))
    for key, word in typed.items():
        expected = HYDRAS_WORDS[word]
        if isinstance(expected, CategoricalDistribution):
            assert {*found[key].choices} == {*expected.choices}, word
        else:
            assert found[key] == expected, word


def test_a_value_of_a_range_has_no_noise_of_binary_fractions(searched: Callable[..., Search]) -> None:
    search = searched(*OPTUNA, "model.dropout=range(0.0,0.3,step=0.1)")
    assert search.space["model.dropout"].convert(0.1 * 3) == 0.3


def test_all_of_a_group_may_be_searched_by_a_pattern(searched: Callable[..., Search]) -> None:
    choices = spaces(searched(*OPTUNA, "model/norm=glob(*)"))["model/norm"].choices
    assert {"layer", "rms"} <= {*choices}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tpe", TPESampler),
        ("random", RandomSampler),
        ("cmaes", CmaEsSampler),
        ("nsgaii", NSGAIISampler),
        ("gp", GPSampler),
        ("qmc", QMCSampler),
    ],
)
def test_each_sampler_has_a_file(name: str, kind: type, searched: Callable[..., Search]) -> None:
    search = searched(*OPTUNA, f"hydra/sweeper/sampler={name}", "hydra.sweeper.sampler.seed=5", RATE)
    assert isinstance(search.sampler(1), kind)
    assert search.seed == 5
    assert search.one_sequence == (name == "qmc")


@pytest.mark.parametrize("trials", [4, 50])
def test_a_grid_asks_for_every_combination_and_leaves_the_stop_of_a_range_out(
    trials: int, searched: Callable[..., Search]
) -> None:
    grid = [*OPTUNA, "hydra/sweeper/sampler=grid", f"hydra.sweeper.n_trials={trials}"]
    search = searched(*grid, "model.heads=range(1,4)", "model/norm=layer,rms")
    assert search.n_trials == min(trials, 6)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=search.sampler(1))
    asked = [study.ask(spaces(search)).params for _ in range(6)]
    assert [(one["model.heads"], one["model/norm"]) for one in asked] == [
        (heads, norm) for heads in (1, 2, 3) for norm in ("layer", "rms")
    ]


def test_seeds_are_what_a_trial_is_the_mean_of(searched: Callable[..., Search]) -> None:
    search = searched(*OPTUNA, RATE, "seed=3,4,5")
    assert search.seeds == (3, 4, 5)
    assert [*search.space] == ["budget.lr_factor"]


def test_a_file_of_the_template_runs_with_the_class_that_it_names(
    searched: Callable[..., Search], capsys: pytest.CaptureFixture[str]
) -> None:
    file = """
defaults: [override /hydra/sweeper: optuna]
optimized_metric: test.bleu
hydra:
  mode: MULTIRUN
  sweeper:
    _target_: hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper
    storage: null
    study_name: named
    n_jobs: 1
    direction: maximize
    n_trials: 5
    sampler: {_target_: optuna.samplers.TPESampler, seed: 1234, n_startup_trials: 2, consider_prior: true}
    params: {model: {heads: "int(interval(1, 4))"}, budget.lr_factor: "interval(0.2, 2)"}
"""
    search = searched("+search=mine", "model.heads=2", mine=file)
    assert spaces(search) == {"budget.lr_factor": FloatDistribution(0.2, 2.0)}
    assert search.fixed == ("+search=mine", "model.heads=2")
    assert search.objectives == (Objective("test.bleu", maximize=True),)
    assert (search.name, search.seed, search.n_jobs, search.n_trials) == ("named", 1234, 1, 5)
    assert search.further  # as the plugin does with a study that it loads
    assert search.sampler(1)._n_startup_trials == 2  # type: ignore[attr-defined]
    assert (
        "hydra.sweeper.sampler: left out, as today's Optuna chooses it itself: consider_prior"
        in capsys.readouterr().err
    )


OLD = """
defaults: [override /hydra/sweeper: optuna]
hydra:
  sweeper:
    search_space:
      budget.lr_factor: {type: float, low: 0.1, high: 4, log: true}
      model.dropout: {type: float, low: 0, high: 0.3, step: 0.1}
      model.heads: {type: int, low: 1, high: 4}
      model.d_ff: {type: int, low: 16, high: 64, step: 16}
      model/norm: {type: categorical, choices: [layer, rms]}
"""


def test_the_space_of_old_files_is_read_and_what_is_typed_wins(searched: Callable[..., Search]) -> None:
    search = searched("-m", "+search=old", "model.heads=int(interval(1,2))", old=OLD)
    assert spaces(search) == {
        "budget.lr_factor": FloatDistribution(0.1, 4.0, log=True),
        "model.dropout": FloatDistribution(0.0, 0.3, step=0.1),
        "model.d_ff": IntDistribution(16, 64, step=16),
        "model/norm": CategoricalDistribution(["layer", "rms"]),
        "model.heads": IntDistribution(1, 2),
    }


def test_the_space_of_an_old_file_is_left_out_where_params_are(
    searched: Callable[..., Search], capsys: pytest.CaptureFixture[str]
) -> None:
    search = searched("-m", "+search=old", old=f"{OLD}    params: {{model.heads: '1,2'}}\n")
    assert [*search.space] == ["model.heads"]
    assert "hydra.sweeper.search_space is left out" in capsys.readouterr().err


def test_a_function_of_the_users_asks_for_more(
    searched: Callable[..., Search], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "asks_for_more.py").write_text(
        "def space(config, trial):\n"
        "    if trial.params['model.heads'] == 2:\n"
        "        trial.suggest_float('model.dropout', 0.0, float(config.model.dropout))\n"
    )
    search = searched(*OPTUNA, "model.heads=1,2", "hydra.sweeper.custom_search_space=asks_for_more.space")
    assert search.custom_space
    study = optuna.create_study()
    for heads, more in ((1, []), (2, ["model.dropout"])):
        study.enqueue_trial({"model.heads": heads})
        trial = study.ask(spaces(search))
        assert [word.partition("=")[0] for word in search.custom_space(trial)] == more


def test_pruning_and_promotion_are_keys_of_the_sweeper_too(searched: Callable[..., Search]) -> None:
    search = searched(*OPTUNA, RATE, "hydra.sweeper.manner=promote", "hydra.sweeper.rungs=[1/9,1/3,1]")
    assert search.promotion == Promotion((1 / 9, 1 / 3, 1.0), 3)


def test_the_mean_of_several_seeds_cannot_pause_at_a_rung(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", *OPTUNA, RATE, "hydra.sweeper.manner=promote", "hydra.sweeper.seeds=2"])
    assert "one that is the mean of the seeds 1, 2 has none: name one seed" in capsys.readouterr().err


def test_a_pruner_is_a_word_or_a_node(searched: Callable[..., Search]) -> None:
    pruner = "{_target_: optuna.pruners.PatientPruner, patience: 2, wrapped_pruner: {_target_: MedianPruner}}"
    search = searched(*OPTUNA, RATE, f"hydra.sweeper.pruner={pruner}")
    assert isinstance(search.stopping, optuna.pruners.PatientPruner)
    assert isinstance(search.stopping._wrapped_pruner, optuna.pruners.MedianPruner)


def test_the_same_search_has_the_same_name_whatever_its_number_of_trials() -> None:
    settings = {"study_name": None, "n_trials": 3, "n_jobs": 1, "sampler": {"_target_": "tpe"}}
    first = _name(settings, [RATE])
    assert first == _name(settings | {"n_trials": 9, "n_jobs": 4}, [RATE])
    assert first != _name(settings, [RATE, "model.heads=1"])
    assert first != _name(settings | {"sampler": {"_target_": "gp"}}, [RATE])
    assert _name(settings | {"study_name": "mine"}, [RATE]) == "mine"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["model.heads=2"], "hydra/sweeper=optuna searches nothing yet: type 'budget.lr_factor=tag"),
        (["budget.lr_factor=tag(log,interval(0,4))"], "a logarithm needs a lower bound above 0, not 0.0"),
        (["budget.lr_factor=interval(4,1)"], "the lower bound comes first, and 4.0 is above 1.0"),
        (["model.heads=range(4,1,step=-1)"], "the lower bound comes first, and 4 is above 1"),
        ([RATE, "++budget.lr_factor=1,2"], "budget.lr_factor is searched twice"),
        (["model.heads=1,2", "hydra/sweeper/sampler=tpee"], "hydra/sweeper/sampler=tpee: there is no 'tpee'"),
        ([RATE, "hydra/sweeper/sampler=grid"], "a grid lists values: write budget.lr_factor=choice"),
        (
            [RATE, "hydra.sweeper.pruner=medan"],
            "pruner: Optuna has no pruner 'medan'; did you mean median?",
        ),
        ([RATE, "hydra.sweeper.manner=stop"], "hydra.sweeper.manner=stop needs a pruner"),
        ([RATE, "hydra.sweeper.storage=trials.db"], "hydra.sweeper.storage: Could not parse SQLAlchemy URL"),
        ([RATE, "hydra.sweeper.storage=sqlite:////no/such/folder.db"], "hydra.sweeper.storage: (sqlite3.Operational"),
        ([RATE, "hydra.sweeper.storage={_target_:nobody.has}"], "hydra.sweeper.storage: Error loading 'nobody.has'"),
        ([RATE, "hydra.sweeper.n_trials=0"], "hydra.sweeper.n_trials must be a whole number, 1 or more, not 0"),
        ([RATE, "hydra.sweeper.max_failure_rate=2"], "hydra.sweeper.max_failure_rate must be a number from 0 to 1"),
        ([RATE, "hydra.sweeper.direction=down"], "hydra.sweeper.direction=down: write minimize or maximize"),
        ([RATE, "hydra.sweeper.direction=[minimize,maximize]"], "has 2 directions, and objective names 1"),
        ([RATE, "hydra.sweeper.custom_search_space=nobody.has"], "nobody.has cannot be found"),
        (
            [RATE, "hydra.sweeper.n_trial=3"],
            "n_trial is not a key of hydra.sweeper; did you mean n_trials",
        ),
        ([RATE, "hydra.sweeper.seeds=2", "seed=1,2"], "hydra.sweeper.seeds and seed=1,2 both list seeds"),
        ([RATE, "hydra/launcher=basic"], "a search needs a launcher of étude's: hydra/launcher=slots"),
    ],
)
def test_what_cannot_be_searched_is_one_sentence(
    words: Sequence[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["train", *OPTUNA, *words])
    [*_, last] = capsys.readouterr().err.splitlines()
    assert last.startswith("etude: ")
    assert told in last
    assert not (tmp_path / "runs").exists()


def test_the_best_is_written_as_the_plugin_writes_it(tmp_path: Path) -> None:
    write_results(tmp_path / "new", [(["budget.lr_factor=0.5", "++model.d_k=null", "study='4'"], [3.25])])
    file = tmp_path / "new/optimization_results.yaml"
    assert yaml.safe_load(file.read_text()) == {
        "name": "optuna",
        "best_params": {"budget.lr_factor": 0.5, "model.d_k": None, "study": "4"},
        "best_value": 3.25,
    }
    write_results(tmp_path / "new", [(["model.heads=1"], [3.0, 1.0]), (["model.heads=2"], [2.0, 2.0])])
    assert yaml.safe_load(file.read_text()) == {
        "name": "optuna",
        "solutions": [
            {"params": {"model.heads": 1}, "values": [3.0, 1.0]},
            {"params": {"model.heads": 2}, "values": [2.0, 2.0]},
        ],
    }


def test_a_metric_that_rises_and_is_minimised_is_told(
    searched: Callable[..., Search], capsys: pytest.CaptureFixture[str]
) -> None:
    searched(*OPTUNA, RATE, "objective=test.bleu", "hydra.sweeper.pruner=median")
    told = capsys.readouterr().err
    assert "hydra.sweeper: test.bleu is minimised, and it is better the higher: say maximize" in told
    assert "test.bleu is known only when a run has ended, so that no trial is stopped or promoted by it" in told
