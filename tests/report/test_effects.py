"""Effects of a grid, and of parts in each other's company, as a report tells them."""

import re
from pathlib import Path

import numpy as np
import pytest

from etude.errors import UserError
from etude.report import results_of_csv
from etude.report.effects import on_company, on_effects
from etude.report.figures import effects
from etude.study.arms import choose_generators, products_of
from etude.study.metrics import Metric
from etude.study.study import load_study

LOSS = Metric("loss", "loss", "loss", "lower", digits=3)
GRID = "grid:\n  model.heads: [8, 4]\n  model/position: [sinusoidal, rope]\n  model.bias: [true, false]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "experiments" / "mine"
    folder.mkdir(parents=True)
    return folder


def told(folder: Path, study: str, losses: dict[str, float]) -> list[str]:
    """What is said of two seeds of each arm, 0.002 apart."""
    (folder / "study.yaml").write_text(study)
    rows = [f"{arm},{seed},{loss + 0.002 * seed}" for arm, loss in losses.items() for seed in (0, 1)]
    (folder / "runs.csv").write_text("\n".join(["arm,seed,loss", *rows, ""]))
    compared = results_of_csv(folder / "runs.csv", "mine", metrics=[LOSS]).compare()
    return [*on_effects(compared), *on_company(compared)]


def test_a_grid_tells_what_two_changes_do_together(folder: Path) -> None:
    (folder / "study.yaml").write_text(GRID)
    of = load_study("mine").grid
    assert len(of) == 8
    rope = {arm: row["model/position"] == "rope" for arm, row in of.items()}
    both = {arm: rope[arm] and row["model.heads"] == "4" for arm, row in of.items()}
    alone, *pairs = told(folder, GRID, {arm: 3 - 0.1 * rope[arm] - 0.05 * both[arm] for arm in of})
    assert "position=rope −0.125 [−0.127, −0.123]*" in alone, "0.05 more with half of the heads; t(8) × 0.0007"
    assert "bias=false −0.000 [−0.002, 0.002]." in alone
    assert [line for line in pairs if "better than the sum*" in line] == [
        "heads=4 and position=rope: together 0.050 [0.047, 0.053] better than the sum*."
    ]
    assert len(pairs) == 3
    figure = effects(results_of_csv(folder / "runs.csv", "mine", metrics=[LOSS]).compare())
    assert figure
    assert np.array(figure.traces[0]["z"]) == pytest.approx(np.array([[-25, -50, 0], [-50, -125, 0], [0, 0, 0]]) / 1e3)


def test_a_grid_with_an_arm_left_out_has_no_effects_and_says_so(folder: Path) -> None:
    (folder / "study.yaml").write_text(GRID)
    missing, *there = load_study("mine").grid
    assert told(folder, f"baseline: {there[0]}\n{GRID}", dict.fromkeys(there, 3.0)) == [
        f"No effects of the grid: no mean that compares of {missing}."
    ]


def test_of_arms_that_share_trainings_effects_have_no_intervals(folder: Path) -> None:
    """The same trainings, scored twice, are not twice as many."""
    study = "grid:\n  model.heads: [8, 4]\n  model.bias: [true, false]\n  decoding.beam: [1, 4]\n"
    (folder / "study.yaml").write_text(study)
    grid, random = load_study("mine").grid, np.random.default_rng(0)
    trained = {arm: f"{row['model.heads']} {row['model.bias']}" for arm, row in grid.items()}
    losses = {(of, seed): random.normal(3, 0.1) for of in dict.fromkeys(trained.values()) for seed in (1, 2)}
    rows = [f"{arm},{seed},{losses[of, seed]},{of}" for arm, of in trained.items() for seed in (1, 2)]
    (folder / "runs.csv").write_text("\n".join(["arm,seed,loss,training", *rows, ""]))
    alone, *pairs = on_effects(results_of_csv(folder / "runs.csv", "mine", metrics=[LOSS]).compare())
    assert "share their trainings" in alone
    assert re.search(r"beam=4 .0\.000", alone)
    assert not any("*" in line or "[" in line for line in (alone, *pairs))


def test_a_whole_grid_with_a_key_of_one_value_is_no_fraction(folder: Path) -> None:
    study = "title: t\ngrid: {model.heads: [8, 4], optimizer: [adam, adamw], model.dropout: [0.1]}\n"
    (folder / "study.yaml").write_text(study)
    lines = told(folder, study, {arm: 3.0 + 0.01 * n for n, arm in enumerate(load_study("mine").grid)})
    assert not [line for line in lines if "fraction" in line.lower()]


@pytest.mark.parametrize(
    ("fraction", "keys", "arms", "said"),
    [
        ("1/2", 3, 4, "resolution III: aliased are a = b × c; b = a × c; c = a × b; effects hold if no two keys act"),
        ("1/2", 4, 8, "resolution IV: aliased are a × b = c × d; a × c = b × d; a × d = b × c."),
        ("1/2", 5, 16, "resolution V, which tells all pairs apart."),
        ("1/4", 6, 16, "resolution IV: aliased are"),
    ],
)
def test_a_fraction_says_its_resolution_and_what_it_does_not_tell_apart(
    fraction: str, keys: int, arms: int, said: str, folder: Path
) -> None:
    grid = "".join(f"  model.{key}: [0, 1]\n" for key in "abcdef"[:keys])
    study = f"fraction: {fraction}\ngrid:\n{grid}"
    (folder / "study.yaml").write_text(study)
    names = load_study("mine").arms
    assert len(names) == arms
    random = np.random.default_rng(0)
    assert said in told(folder, study, {arm: float(random.normal(3, 0.1)) for arm in names})[-1]


@pytest.mark.parametrize(
    ("factors", "halvings", "resolution"),
    [(3, 1, 3), (4, 1, 4), (5, 1, 5), (5, 2, 3), (6, 2, 4), (7, 3, 4), (7, 4, 3), (8, 2, 5), (8, 4, 4), (9, 5, 3)],
)
def test_a_fraction_has_the_best_resolution_there_is(factors: int, halvings: int, resolution: int) -> None:
    """Montgomery, Design and Analysis of Experiments, table 8.14; 2^(4-2) is III."""
    words = choose_generators(factors, halvings)
    lengths = [word.bit_count() for word in products_of(words)]
    assert (len(lengths), min(lengths)) == (2**halvings - 1, resolution)


@pytest.mark.parametrize(
    ("study", "said"),
    [
        ("fraction: 1/4\n" + GRID, "fraction: 1/4 of 8 arms leaves 2"),
        ("fraction: 1/3\n" + GRID, "fraction must be 1/2, 1/4"),
        ("fraction: 1/2\ngrid: {model.heads: [1, 2, 4], model.bias: [true, false]}\n", "with two values each"),
        ("fraction: 1/2\nbaseline: base\narms: {base: []}\n", "fraction is of a grid"),
    ],
)
def test_a_fraction_that_no_design_allows_is_answered(study: str, said: str, folder: Path) -> None:
    (folder / "study.yaml").write_text(study)
    with pytest.raises(UserError, match=said):
        load_study("mine")


def test_a_part_that_helps_alone_and_not_among_others_is_named(folder: Path) -> None:
    study = (
        "baseline: base\nleave_one_out: all\narms:\n  base: []\n  rope: [model/position=rope]\n"
        "  four: [model.heads=4]\n  all: [model/position=rope, model.heads=4]\n"
    )
    losses = {"base": 3.0, "rope": 2.9, "four": 2.8, "all": 2.8, "all-without-position": 2.8, "all-without-heads": 2.9}
    assert told(folder, study, losses) == [
        "position helps alone (rope against base), and not among the others of all (all-without-position is not "
        "shown to be worse)."
    ]
