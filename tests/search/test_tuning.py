"""A study that is swept with `tuned=true`: what is tried, what is judged, and what is refused."""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.utils import JobReturn
from hydra.utils import instantiate

from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache
from etude.config.freeze import places
from etude.errors import UserError
from etude.search.distributions import share
from etude.search.engine import Engine
from etude.search.hyperband import Hyperband
from etude.search.promotion import expected_share
from etude.search.search import Promotion, Search
from etude.search.sweep_file import Saving, planned_runs, saving_of, sweep_overrides
from etude.search.together import Together
from etude.search.tuning import combinations
from etude.search.tuning_search import tuning_searches
from etude.store.run_dir import RunDir
from etude.store.run_state import State
from etude.study.study import load_study

RATES = (0.5, 1.0, 2.0)
STUDY = {
    "baseline": "base",
    "arms": {"base": [], "one_head": ["model.heads=1"]},
    "tune": {"budget.lr_factor": [*RATES]},
    "pilots": [101, 102],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the study `mine`."""
    (tmp_path / "experiments" / "mine").mkdir(parents=True)
    (tmp_path / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(STUDY))
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "free.yaml").write_text("method: grid\nparameters: {seed: {values: [1, 2]}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Launcher:
    """Finishes every run, with the validation perplexity that `score` gives its overrides."""

    def __init__(self, score: Callable[[Sequence[str]], float]) -> None:
        self.score = score
        self.launched: list[list[list[str]]] = []
        self.tried: list[list[str]] = []

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
        assert initial_job_idx == sum(map(len, self.launched))
        self.launched.append([list(run) for run in job_overrides])
        for overrides, run in zip(job_overrides, places(job_overrides, ConfigCache()), strict=True):
            run.path.mkdir(parents=True, exist_ok=True)
            store = next((word for word in overrides if word.startswith("data.")), "")
            result = {"valid": {"perplexity": self.score(overrides)}, "store": store}
            run.result_file.write_text(json.dumps(result))
        return [JobReturn(working_dir=str(run.path)) for run in places(job_overrides, ConfigCache())]

    def search(self, *searches: Search) -> list[Any]:
        words: dict[RunDir, Sequence[str]] = {}

        def freeze(jobs: Sequence[Sequence[str]]) -> list[RunDir]:
            runs = [RunDir(Path("runs", *job).absolute()) for job in jobs]
            words.update(zip(runs, jobs, strict=True))
            return runs

        engines = [Engine(one, Path("runs"), "mine", freeze) for one in searches]
        source = Together(engines)
        while found := source.more(2):
            self.tried += [list(words[run]) for run, _ in found]
            for run, _ in found:
                run.path.mkdir(parents=True, exist_ok=True)
                result = {"valid": {"perplexity": self.score(words[run])}, "store": ""}
                run.result_file.write_text(json.dumps(result))
                source.ended(run, State.FINISHED)
        return [engine.journal.study for engine in engines]


def swept(words: Sequence[str], score: Callable[[Sequence[str]], float], error: str = "") -> list[list[list[str]]]:
    """Sweep `mine` and return what was launched; the sweep must end with the error, if one is given."""
    overrides = sweep_overrides("mine", words)
    config = compose([word for word in overrides if word.startswith("hydra")])
    sweeper = instantiate(config.hydra.sweeper)
    sweeper.config = config
    sweeper.launcher = launcher = Launcher(score)
    with pytest.raises(UserError, match=error) if error else nullcontext():
        sweeper.sweep([word for word in overrides if not word.startswith("hydra")])
    return [*([launcher.tried] if launcher.tried else []), *launcher.launched]


def rate(run: Sequence[str]) -> float:
    return float(next((word.partition("=")[2] for word in run if word.startswith("budget.lr_factor=")), "nan"))


def test_trials_come_first_and_each_arm_is_judged_at_its_own_best_besides(folder: Path) -> None:
    """The base learns best at 2 and one head at 0.5; a shared rate is judged as if nothing had been tuned."""

    def score(run: Sequence[str]) -> float:
        best = 0.5 if "experiment=mine/one_head" in run else 2.0
        return 2.0 + abs(math.log(rate(run) / best)) if not math.isnan(rate(run)) else 9.0

    tried, judged = swept(["tuned=true", "seed=11,12"], score)
    assert sorted((run[0], rate(run), run[-1]) for run in tried) == sorted(
        (f"experiment=mine/{arm}", one, f"seed={pilot}")
        for arm in ("base", "one_head")
        for one in RATES
        for pilot in (101, 102)
    )
    told = [(run[0].partition("/")[2], run[1], rate(run)) for run in judged]
    assert [(arm, seed) for arm, seed, one in told if math.isnan(one)] == [
        (arm, seed) for arm in ("base", "one_head") for seed in ("seed=11", "seed=12")
    ]
    assert {(arm, one) for arm, _, one in told if not math.isnan(one)} == {("base", 2.0), ("one_head", 0.5)}
    assert len(told) == 8


def test_values_that_make_one_run_leave_nothing_to_choose(folder: Path) -> None:
    """With a peak of its own, the schedule makes no use of the factor of the paper's formula."""
    told = r"mine/base, mine/one_head: values of budget\.lr_factor make the same run, so that there is"
    swept(["tuned=true", "seed=11", "schedule=wsd", "schedule.peak=0.003"], lambda run: 2.0, error=told)


def test_runs_that_need_no_best_value_are_finished_though_no_arm_has_one(folder: Path) -> None:
    words = ["tuned=true", "seed=11", "schedule=wsd", "schedule.peak=0.003"]
    _, judged = swept(words, lambda run: 2.0, error="make the same run")
    assert [run[:2] for run in judged] == [["experiment=mine/base", "seed=11"], ["experiment=mine/one_head", "seed=11"]]


def test_an_arm_without_a_best_value_does_not_keep_the_others_from_theirs(folder: Path) -> None:
    def score(run: Sequence[str]) -> float:
        return math.inf if "experiment=mine/one_head" in run else 2.0 + rate(run)

    _, judged = swept(["tuned=true", "seed=11"], score, error=r"^mine/one_head: none of the 3 values that were tried")
    assert [(run[0], rate(run)) for run in judged if not math.isnan(rate(run))] == [("experiment=mine/base", 0.5)]


def test_values_with_other_subwords_are_not_ranked_by_perplexity(folder: Path) -> None:
    tuned = STUDY | {"tune": {"data.vocab_size": [300, 600]}}
    (folder / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(tuned))
    told = r"mine/base, mine/one_head: with other values of data\.vocab_size the text or the subwords are others"
    _, judged = swept(["tuned=true", "seed=11"], lambda run: 2.0 + ("data.vocab_size=600" in run), error=told)
    assert all("data." not in "".join(run) for run in judged)


def test_a_run_without_a_seed_has_that_of_the_config_which_may_be_a_pilot(folder: Path) -> None:
    (folder / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(STUDY | {"pilots": [1]}))
    with pytest.raises(UserError, match="seed=1 is a pilot seed of study mine: judge on other seeds"):
        planned_runs("mine", ["tuned=true"])


def test_a_value_that_diverges_on_any_pilot_is_no_best(folder: Path) -> None:
    def score(run: Sequence[str]) -> float:
        return math.inf if rate(run) == 1.0 and "seed=102" in run else 2.0 + abs(rate(run) - 1.0)

    _, judged = swept(["tuned=true", "seed=11"], score)
    assert {rate(run) for run in judged if not math.isnan(rate(run))} == {0.5}


def test_an_arm_that_diverges_at_every_value_is_named(folder: Path) -> None:
    told = "^mine/base, mine/one_head: none of the 3 values that were tried came to a finite end"
    swept(["tuned=true", "seed=11"], lambda run: math.nan, error=told)


@pytest.mark.parametrize("seeds", ["seed=11,12", "++seed=11,12"])
def test_a_plan_counts_trials_and_both_readings(seeds: str, folder: Path) -> None:
    planned = planned_runs("mine", ["tuned=true", seeds])
    assert len(planned) == 2 * 3 * 2 + 2 * 2 + 2 * 2
    assert len(planned_runs("mine", ["seed=11,12"])) == 4


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("mine", ["tuned=yes"], "tuned=yes: say tuned=true, or leave it out"),
        ("mine", ["tuned=true", "seed=101"], "seed=101 is a pilot seed of study mine: judge on other seeds"),
        ("mine", ["tuned=true", "++seed=11,101"], "seed=101 is a pilot seed of study mine: judge on other seeds"),
        ("mine", ["tuned=true", "seed=11", "seed=101"], "seed=101 is a pilot seed of study mine"),
        ("mine", ["tuned=true", "++budget.lr_factor=1"], r"tuned=true tries values of budget\.lr_factor"),
        (
            "mine",
            ["tuned=true", "budget.lr_factor=1"],
            r"tuned=true tries values of budget\.lr_factor: leave it out here",
        ),
        ("modern", ["tuned=true"], "study modern does not say what to tune; add to its study.yaml"),
        ("free", ["tuned=true"], "tuned=true is for the arms of one study"),
    ],
)
def test_what_cannot_be_tuned_is_refused(name: str, words: list[str], told: str, folder: Path) -> None:
    with pytest.raises(UserError, match=told):
        planned_runs(name, words)


def test_what_is_neither_true_nor_false_launches_nothing(folder: Path) -> None:
    with pytest.raises(UserError, match="tuned=maybe: say tuned=true, or leave it out"):
        sweep_overrides("mine", ["tuned=maybe"])
    assert "hydra.sweeper.tuned=false" in sweep_overrides("mine", ["tuned=false"])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"tune": ["budget.lr_factor"]}, "tune must map config keys to lists of values"),
        ({"tune": {"budget.lr_factor": 1}}, "tune must map config keys to lists of values"),
        ({"pilots": []}, "tune needs pilots, the seeds on which values are tried"),
        ({"pilots": [-1]}, "pilots must be a list of seeds"),
    ],
)
def test_a_study_that_says_it_wrongly_is_told_by_file_and_key(changed: dict, told: str, folder: Path) -> None:
    (folder / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(STUDY | changed))
    with pytest.raises(UserError, match=rf"study\.yaml: {told}"):
        load_study("mine")


def test_trials_lie_where_any_run_of_that_config_lies(folder: Path) -> None:
    """So that a sweep typed again, or a run typed by hand, computes none of them twice."""
    trial = planned_runs("mine", ["tuned=true", "seed=11"])[0]
    by_hand = ["experiment=mine/base", "seed=101", "budget.lr_factor=0.5"]
    assert places([trial], ConfigCache()) == places([by_hand], ConfigCache())
    assert isinstance(places([trial], ConfigCache())[0], RunDir)


RATE: dict[str, Any] = {"distribution": "log_uniform_values", "min": 0.25, "max": 4.0}


def drawn(folder: Path, **options: Any) -> None:
    """Have the study draw its rate, on one pilot seed."""
    tune = {"budget.lr_factor": RATE, "trials": 6} | options
    (folder / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(STUDY | {"tune": tune, "pilots": [101]}))


@pytest.mark.parametrize("pilots", [[101], [101, 102]])
def test_all_arms_have_the_same_draws_and_each_is_judged_at_its_own_best(pilots: list[int], folder: Path) -> None:
    study = STUDY | {"tune": {"budget.lr_factor": RATE, "trials": 6}, "pilots": pilots}
    (folder / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(study))

    def score(run: Sequence[str]) -> float:
        best = 0.5 if "experiment=mine/one_head" in run else 2.0
        return 2.0 + abs(math.log(rate(run) / best)) if not math.isnan(rate(run)) else 9.0

    tried, judged = swept(["tuned=true", "seed=11"], score)
    draws = [one for (one,) in combinations(load_study("mine"))]
    for arm, best in (("base", 2.0), ("one_head", 0.5)):
        of_arm = [rate(run) for run in tried if f"experiment=mine/{arm}" in run]
        assert of_arm == [one for one in draws for _ in pilots]
        [chosen] = [rate(run) for run in judged if f"experiment=mine/{arm}" in run and not math.isnan(rate(run))]
        assert chosen == min(draws, key=lambda one: abs(math.log(one / best)))
    assert swept(["tuned=true", "seed=11"], score) == [judged], "typed again, no trial is made a second time"
    assert len(planned_runs("mine", ["tuned=true", "seed=11"])) == 2 * 6 * len(pilots) + 2 * 2


@pytest.mark.parametrize("sampler", ["random", "qmc"])
def test_more_trials_begin_with_those_of_fewer(sampler: str, folder: Path) -> None:
    tune = {"model.dropout": [0.0, 0.1, 0.2], "model.n_layers": {"min": 1, "max": 4}, "sampler": sampler}
    drawn(folder, **tune, trials=20)
    many = combinations(load_study("mine"))
    drawn(folder, **tune, trials=5)
    assert combinations(load_study("mine")) == many[:5]
    if sampler == "random":
        expected = 0.25 * 16 ** share(1, 0, "budget.lr_factor")
        assert many[0][0] == pytest.approx(expected), "as trial 0 of a sweep file"
    assert all(0.25 <= one <= 4 and dropout in (0.0, 0.1, 0.2) for one, dropout, _ in many)


def test_quasi_random_draws_are_spread_evenly(folder: Path) -> None:
    drawn(folder, sampler="qmc", trials=16)
    logs = sorted(math.log(one / 0.25, 16) for (one,) in combinations(load_study("mine")))
    assert all(place / 16 <= one <= (place + 1) / 16 for place, one in enumerate(logs))


def test_trials_are_stopped_or_promoted_by_the_words_of_sweep_files(folder: Path) -> None:
    runs = [["experiment=mine/base", "seed=1"], ["experiment=mine/base", "seed=1", "scale=small"]]
    drawn(folder, manner="promote", rungs=["1/4", 1], eta=2)
    small, large = tuning_searches(load_study("mine"), runs)
    assert small.promotion == large.promotion == Promotion((0.25, 1.0), 2)
    assert small.name != large.name, "another setting, another search"
    assert small.fixed == ("experiment=mine/base", "seed=101")
    drawn(folder, early_terminate={"type": "hyperband", "min_iter": 3})
    assert tuning_searches(load_study("mine"), runs)[0].stopping == Hyperband(min_iter=3)


def test_arms_get_the_same_hours_and_with_more_of_them_go_on(folder: Path) -> None:
    runs = [["experiment=mine/base", "seed=1"]]
    drawn(folder, hours=0.5)
    [half] = tuning_searches(load_study("mine"), runs)
    drawn(folder, hours=2, trials=50)
    [two] = tuning_searches(load_study("mine"), runs)
    assert (half.hours, two.hours, half.name) == (0.5, 2, two.name)
    words = ["tuned=true", "seed=11"]
    assert saving_of("mine", words, planned_runs("mine", words)) == Saving(None, [101], 2)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"trials": 0}, r"study\.yaml: tune\.trials must be a whole number, 1 or more, not 0"),
        ({"hours": 0}, r"study\.yaml: tune\.hours must be a number above 0, not 0"),
        ({"trials": None}, r"study\.yaml: tune\.budget\.lr_factor needs the number of trials of each arm"),
        ({"budget.lr_factor": {"min": 4, "max": 1}}, r"study\.yaml: tune\.budget\.lr_factor\.min=4 is above its max=1"),
        ({"budget.lr_factor": {"value": 4}}, r"tune\.budget\.lr_factor: what is tuned has several plain values"),
        ({"sampler": "tpe"}, r"tune\.sampler is 'tpe': write random or qmc, with which all arms share their draws"),
        ({"manner": "stop"}, r"study\.yaml: tune\.manner: stop needs early_terminate, or a pruner"),
        ({"manner": "halt"}, r"study\.yaml: tune\.manner is 'halt': write stop or promote"),
        ({"trails": 20}, r"study\.yaml: tune\.trails: what is tuned is a config key .* there are trials, hours"),
    ],
)
def test_draws_that_are_not_valid_are_told_by_file_and_key(options: dict[str, Any], told: str, folder: Path) -> None:
    drawn(folder, **options)
    with pytest.raises(UserError, match=told):
        tuning_searches(load_study("mine"), [["experiment=mine/base", "seed=1"]])


def test_promotion_saves_a_share_of_the_trials_alone(folder: Path) -> None:
    words = ["tuned=true", "seed=11"]
    drawn(folder, manner="promote", rungs=[0.1, 1], eta=4)
    assert saving_of("mine", words, planned_runs("mine", words)) == Saving(expected_share((0.1, 1), 4, 6), [101])
    drawn(folder)
    assert saving_of("mine", words, planned_runs("mine", words)) is None


def test_the_mean_over_several_pilots_is_neither_stopped_nor_promoted(folder: Path) -> None:
    study = STUDY | {"tune": {"budget.lr_factor": RATE, "trials": 6, "manner": "promote"}}
    (folder / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(study))
    with pytest.raises(UserError, match="the mean over several pilot seeds has none: name one in pilots"):
        tuning_searches(load_study("mine"), [["experiment=mine/base", "seed=1"]])
