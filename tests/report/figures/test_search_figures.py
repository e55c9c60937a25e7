"""The figures of a search draw what its journal and its runs say; they are looked at in a browser by hand."""

import json
import re
from dataclasses import asdict
from math import inf
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator
from tests.report.test_searched import made
from tests.search.world import EVERY, SECONDS, STEPS, World, loss

from etude.report.figures.figure import Figure
from etude.report.figures.search import learning_curves, progress
from etude.report.figures.space import Space, contour, importance, importances, parallel, slices, space_of
from etude.report.render.html.search_page import search_page
from etude.report.search_table import table
from etude.report.searched import Searched
from etude.search.search import Dimension, Promotion
from etude.store.run_state import State

SPACE = {
    "x": Dimension(FloatDistribution(0.1, 10.0, log=True), "log 0.1 to 10"),
    "k": Dimension(IntDistribution(1, 5), "1 to 5"),
    "kind": Dimension(CategoricalDistribution(["a", "b"]), "a or b"),
}


@pytest.fixture(scope="module")
def promoted(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    folder = tmp_path_factory.mktemp("promoted")
    world = World(folder, timed=False)
    return made(folder, world, space=SPACE, promotion=Promotion(), n_trials=14)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    folder = tmp_path_factory.mktemp("whole")
    sampler = {"sampler": lambda seed: optuna.samplers.RandomSampler(seed=seed)}
    return made(folder, space=SPACE, n_trials=40, **sampler)


def space(found: Searched) -> Space:
    got = space_of(found)
    assert got
    return got


def test_the_best_so_far_is_that_of_the_trials_until_then(whole: Searched) -> None:
    drawn = progress(whole)
    assert [*drawn] == ["trials", "steps", "hours"]
    marks, line = drawn["trials"].traces
    values = [trial.recorded.values[0] for trial in whole.own]
    assert marks["y"] == values
    assert line["y"] == [min(values[: n + 1]) for n in range(len(values))]
    assert drawn["steps"].traces[0]["x"] == [STEPS * (n + 1) for n in range(len(values))]
    assert drawn["hours"].traces[0]["x"] == pytest.approx(
        [SECONDS * STEPS * (n + 1) / 3600 for n in range(len(values))]
    )


def test_a_trial_that_paused_costs_its_steps_and_has_no_mark(promoted: Searched) -> None:
    drawn = progress(promoted)
    assert [*drawn] == ["trials", "steps"]  # the runs do not say how long they took
    assert [row[0] for row in drawn["steps"].rows] == [
        str(number) for number, step in promoted.recorded.events if step is None and promoted.trials[number].is_judged
    ]
    spent = sum(trial.step for trial in promoted.own)
    assert drawn["steps"].traces[0]["x"][-1] <= spent


def test_each_curve_ends_where_its_trial_stopped(promoted: Searched) -> None:
    drawn = learning_curves(promoted)
    assert drawn
    ends = {
        one[0]: x for trace in drawn.traces for one, x in zip(trace.get("customdata", []), trace["x"], strict=False)
    }
    assert ends == {trial.number: trial.step for trial in promoted.own}
    assert {trace["name"] for trace in drawn.traces if "name" in trace} == {str(t.state) for t in promoted.own}


def test_unfinished_trials_are_held_against_each_other_at_the_last_step_of_all(promoted: Searched) -> None:
    compared = space(promoted)
    assert compared.step == EVERY
    assert compared.scores == {trial.number: trial.recorded.curve[EVERY] for trial in promoted.own}
    assert compared.name == "validation loss at step 10"


def test_finished_trials_are_held_against_each_other_at_their_end(whole: Searched) -> None:
    compared = space(whole)
    assert compared.step is None
    assert compared.scores == {trial.number: trial.recorded.values[0] for trial in whole.own}


def test_a_trial_that_diverged_counts_as_the_worst(tmp_path: Path) -> None:
    def diverging(words: dict[str, str]) -> float:
        return inf if float(words["x"]) < 0.7 else loss(words)

    found = made(tmp_path, World(tmp_path, diverging), space=SPACE)
    scores = space(found).scores
    worst = max(trial.recorded.values[0] for trial in found.judged)
    assert {scores[trial.number] for trial in found.own if trial.state is State.DIVERGED} == {worst}
    drawn = slices(space(found), "x")
    told = {row[0]: row[-1] for row in drawn.rows}
    assert {number for number, score in told.items() if score == "diverged"} == {
        str(trial.number) for trial in found.own if trial.state is State.DIVERGED
    }
    assert "A trial that diverged stands at the worst of the others" in drawn.caption


@pytest.mark.parametrize("method", ["PED-ANOVA", "fANOVA"])
def test_importance_is_optunas_and_its_interval_holds_it(method: str, whole: Searched) -> None:
    if method == "fANOVA":
        pytest.importorskip("sklearn", reason="needs scikit-learn: pip install 'etude[fanova]'")
    compared = space(whole)
    found = importances(compared)[method]
    study = optuna.create_study()
    for trial in compared.trials:
        drawn = {"x": float(trial.words["x"]), "k": int(trial.words["k"]), "kind": trial.words["kind"]}
        dists = {key: dimension.distribution for key, dimension in SPACE.items()}
        value = trial.recorded.values[0]
        study.add_trial(optuna.trial.create_trial(params=drawn, distributions=dists, value=value))
    evaluators = {
        "PED-ANOVA": PedAnovaImportanceEvaluator(target_quantile=5 / 40),
        "fANOVA": FanovaImportanceEvaluator(seed=0),
    }
    theirs = evaluators[method].evaluate(study)
    shares = {key: value / sum(theirs.values()) for key, value in theirs.items()}
    assert {key: share for key, (share, _) in found.items()} == pytest.approx(shares)
    assert [*found] == sorted(found, key=lambda key: -found[key][0])
    for share, interval in found.values():
        assert interval
        assert 0 <= interval.low <= interval.high <= 1
        assert interval.low - 0.2 <= share <= interval.high + 0.2


def test_of_few_trials_nothing_is_said_of_importance(tmp_path: Path) -> None:
    assert importances(space(made(tmp_path, space=SPACE, n_trials=5))) == {}


def test_every_trial_is_in_every_picture_of_the_space(whole: Searched) -> None:
    compared, numbers = space(whole), {str(trial.number) for trial in whole.own}
    drawn = [*(slices(compared, key) for key in SPACE), parallel(compared), contour(compared, "x", "k")]
    drawn.append(contour(compared, "x", "kind"))
    for figure in drawn:
        assert figure
        assert {row[0] for row in figure.rows} == numbers
    over = slices(compared, "x")
    at = {one[0]: (x, y) for t in over.traces for one, x, y in zip(t["customdata"], t["x"], t["y"], strict=True)}
    assert at == {t.number: (float(t.words["x"]), compared.scores[t.number]) for t in whole.own}
    assert over.layout["xaxis"]["type"] == "log"
    assert slices(compared, "kind").layout["xaxis"]["ticktext"] == ["a", "b"]


def test_an_interpolation_lies_between_the_scores(whole: Searched) -> None:
    figure = contour(space(whole), "x", "k")
    assert figure
    heights = [height for row in figure.traces[0]["z"] for height in row if height is not None]
    scores = space(whole).scores.values()
    assert min(scores) - 1e-3 <= min(heights) <= max(heights) <= max(scores) + 1e-3
    assert len(heights) > 200


def figures_of(found: Searched) -> list[Figure]:
    compared = space(found)
    computed = importances(compared).items()
    drawn = [*progress(found).values(), learning_curves(found), parallel(compared), contour(compared, "x", "k")]
    drawn += [*(slices(compared, key) for key in SPACE), *(importance(compared, name, its) for name, its in computed)]
    return [figure for figure in drawn if figure]


@pytest.mark.parametrize("name", ["promoted", "whole"])
def test_plotly_takes_every_figure(name: str, request: pytest.FixtureRequest) -> None:
    drawn = figures_of(request.getfixturevalue(name))
    assert len(drawn) >= 9
    for figure in drawn:
        figure.plotly()  # it refuses an attribute that it does not know
        json.dumps(asdict(figure), allow_nan=False)
        assert all(len(row) == len(figure.head) for row in figure.rows)


def test_the_page_has_a_section_for_each_figure_and_asks_no_server(promoted: Searched) -> None:
    page = search_page(promoted, table(promoted), "etude report my.yaml --html page.html", [table(promoted)])
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections == ["table", "further0", "progress", "curves", "importance", "parallel", "slices", "contour"]
    assert page.count('id="study"') == 1
    assert '<span class="is"></span>' not in page  # on a phone, each trial says what it tries
    assert "default-src 'none'" in page
    assert "src=" not in page.partition('<script type="text/plain"')[0]
