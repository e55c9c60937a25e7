"""How far a study agrees with its paper, against the definitions worked out by hand."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from scipy import stats

from etude.errors import UserError
from etude.report import report, results
from etude.report.comparison import Agreement
from etude.store.run_dir import RunDir

from .conftest import declared

Make = Callable[..., RunDir]

PAPER = {"base": 5.0, "A1": 6.0, "A2": 5.05, "E1": 4.0, "long": 5.0}
CRITERIA = {"large": 0.03, "margin": 0.05}


@pytest.fixture
def printed(runs_dir: Path) -> Path:
    """A paper with two large differences and two ties, and what counts as agreement."""
    folder = runs_dir.parent / "experiments" / "heads"
    folder.joinpath("paper.yaml").write_text(yaml.safe_dump({"arms": {arm: {"ppl": p} for arm, p in PAPER.items()}}))
    declared(runs_dir, agreement=CRITERIA)
    return runs_dir


def found(runs_dir: Path) -> Agreement:
    agreement = results("heads", runs_dir).compare().agreement
    assert agreement is not None
    return agreement


def summary(runs_dir: Path) -> str:
    return report("heads", runs_dir, {}).rows.sentences[0]


def cells(runs_dir: Path) -> dict[str, str]:
    rows = report("heads", runs_dir, {}).rows
    place = [column.header for column in rows.columns].index("agrees")
    return {row.texts[0].rstrip("§¹"): row.texts[place] for row in rows.rows}


def test_a_difference_is_large_by_the_deviations_that_the_paper_prints(printed: Path, make_run: Make) -> None:
    folder = printed.parent / "experiments" / "heads"
    study = folder / "study.yaml"
    study.write_text(study.read_text().replace("large: 0.03", "deviations: 3"))
    # of the difference of A1: sqrt(0.03^2 + 0.04^2) = 0.05, and 3 * 0.05 < ln(6 / 5) = 0.18; of E1, 3 * 0.1 > 0.22
    spread = {"base": 0.03, "A1": 0.04, "A2": 0.04, "E1": 0.0954, "long": 0.04}
    rows = {arm: {"ppl": ppl, "ppl_sd": spread[arm]} for arm, ppl in PAPER.items()}
    folder.joinpath("paper.yaml").write_text(yaml.safe_dump({"arms": rows}))
    for arm in PAPER:
        make_run(arm, ppl=2.0)
    points = found(printed).points
    assert {arm for arm, point in points.items() if point.large} == {"A1"}
    assert points["A1"].paper_range == pytest.approx((math.log(6 / 5) - 0.15, math.log(6 / 5) + 0.15))
    del rows["E1"]["ppl_sd"]
    folder.joinpath("paper.yaml").write_text(yaml.safe_dump({"arms": rows}))
    with pytest.raises(UserError, match=r"agreement\.deviations: paper\.yaml lacks ppl_sd of E1"):
        found(printed)


def test_large_differences_agree_by_their_sign_and_ties_by_the_margin(printed: Path, make_run: Make) -> None:
    for arm, ppl in {"base": 2.0, "A1": 2.1, "A2": 2.2, "E1": 2.3, "long": 2.01}.items():
        make_run(arm, ppl=ppl)
    agreement = found(printed)
    assert {arm: (point.large, point.agrees) for arm, point in agreement.points.items()} == {
        "A1": (True, True),
        "A2": (False, False),
        "E1": (True, False),
        "long": (False, True),
    }
    assert (agreement.signs, agreement.ties) == ((1, 2), (0, 1, 2))
    assert cells(printed) == {"base": "", "A1": "✓ sign", "A2": "✗ tie", "E1": "✗ sign", "long": "✓ tie"}
    told = "signs 1 of 2, ties 1 of 2 within ±0.05 nats (one seed: not tested)"
    assert summary(printed).startswith(f"Agreement with the paper in ln PPL: {told}, ρ ")
    assert "Not as in the paper: E1 with another sign; A2 no tie." in report("heads", printed, {}).rows.sentences


def test_points_are_differences_of_logarithms_with_the_papers_rounding(printed: Path, make_run: Make) -> None:
    for arm, ppl in {"base": 2.0, "A1": 2.1, "A2": 2.2, "E1": 2.3, "long": 2.01}.items():
        make_run(arm, ppl=ppl)
    point = found(printed).points["A1"]
    assert (point.paper, point.ours) == (pytest.approx(math.log(6 / 5)), pytest.approx(math.log(2.1 / 2)))
    assert point.paper_range == pytest.approx((math.log(5.995 / 5.005), math.log(6.005 / 4.995)))


def test_a_paper_that_prints_more_digits_than_the_metric_shows_has_no_rounding_to_speak_of(
    printed: Path, make_run: Make
) -> None:
    folder = printed.parent / "experiments" / "heads"
    rows = {arm: {"ppl": ppl / 2000} for arm, ppl in PAPER.items()}
    folder.joinpath("paper.yaml").write_text(yaml.safe_dump({"arms": rows}))
    for arm in PAPER:
        make_run(arm, ppl=2.0)
    point = found(printed).points["A1"]
    assert point.paper_range == (point.paper, point.paper) == pytest.approx((math.log(6 / 5),) * 2)


def test_the_line_is_that_of_least_squares(printed: Path, make_run: Make) -> None:
    ours = {"base": 2.0, "A1": 2.5, "A2": 2.0, "E1": 1.7, "long": 2.1}
    for arm, ppl in ours.items():
        make_run(arm, ppl=ppl)
    line = found(printed).line
    arms = ("A1", "A2", "E1", "long")
    expected = stats.linregress([math.log(PAPER[a] / 5) for a in arms], [math.log(ours[a] / 2) for a in arms])
    assert (line.r, line.slope, line.points) == (pytest.approx(expected.rvalue), pytest.approx(expected.slope), 4)
    assert f"slope {expected.slope:.2f} [" in summary(printed)


def test_a_tie_is_shown_by_a_test_and_not_by_a_missing_star(printed: Path, make_run: Make) -> None:
    """A2 lies near the baseline and so do its seeds; long lies as near, and its seeds do not tell."""
    ppl = {
        "base": [2.000, 2.002, 2.004],
        "A1": [2.1, 2.102, 2.104],
        "A2": [2.002, 2.004, 2.006],
        "E1": [1.9, 1.902, 1.904],
        "long": [1.80, 2.004, 2.23],
    }
    for arm, seeds in ppl.items():
        for seed, value in enumerate(seeds, 1):
            make_run(arm, seed, ppl=value)
    agreement = found(printed)
    assert (agreement.signs, agreement.ties) == ((2, 2), (1, 2, 2))
    assert {arm: agreement.points[arm].shown for arm in ("A2", "long")} == {"A2": True, "long": False}
    assert "ties 1 of 2 shown to be within ±0.05 nats (2 by their means)" in summary(printed)
    assert (cells(printed)["A2"], cells(printed)["long"]) == ("✓ tie", "? tie")


def test_an_arm_without_a_result_counts_among_the_papers_differences(printed: Path, make_run: Make) -> None:
    """Otherwise a sweep of which the hard arms diverged would agree better than one that finished."""
    for arm, ppl in {"base": 2.0, "A1": 2.1, "long": 2.01, "E1": math.nan}.items():
        make_run(arm, ppl=ppl)
    agreement = found(printed)
    assert (agreement.signs, agreement.ties) == ((1, 2), (0, 1, 2))
    assert agreement.missing == {"A2": False, "E1": True}
    notes = report("heads", printed, {}).rows.sentences
    assert notes[0].startswith("Agreement with the paper in ln PPL: signs 1 of 2, ties 1 of 2 ")
    assert "No result, and so not as in the paper either: A2, E1." in notes
    assert any(note.endswith("the others are ties. All intervals are of 95 %.") for note in notes)  # there is no line


def test_without_criteria_or_a_paper_there_is_no_agreement(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    make_run("A1")
    assert results("heads", runs_dir).compare().agreement is None
    assert "agrees" not in [column.header for column in report("heads", runs_dir, {}).rows.columns]


def test_an_arm_that_the_paper_holds_against_the_baseline_and_the_study_does_not_is_no_point(
    printed: Path, make_run: Make
) -> None:
    declared(printed, against={"A2": "A1"})
    for arm, ppl in {"base": 2.0, "A1": 2.1, "A2": 2.2, "E1": 2.3, "long": 2.01}.items():
        make_run(arm, ppl=ppl)
    assert set(found(printed).points) == {"A1", "E1", "long"}
