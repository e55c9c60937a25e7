"""Several studies in one table, and runs of any studies."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from etude.cli.report import main as report
from etude.errors import UserError
from etude.report import results, results_of_runs, together
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]
MORE = """
title: More positions
baseline: plain
arms: {plain: [], E1: [model/position=learned], A1: [model.heads=16], wide: [model.heads=16, model/position=learned]}
against: {wide: E1}
columns: {heads: model.heads}
"""


@pytest.fixture
def two(runs_dir: Path, make_run: Make) -> Path:
    """Runs of `heads`, and of `more`, whose baseline and E1 are the same runs, and whose A1 is not."""
    study = runs_dir.parent / "experiments" / "more"
    study.mkdir(parents=True)
    (study / "study.yaml").write_text(MORE)
    for arm in ("base", "A1", "E1"):
        for seed in (1, 2):
            make_run(arm, seed, ppl=3.0 + 0.1 * seed + len(arm))
    for theirs, ours in (("base", "plain"), ("E1", "E1"), ("A2", "A1")):
        run = make_run(theirs, 3 if theirs != "A2" else 1, ppl=3.2)
        place = runs_dir / "more" / ours / run.path.name
        shutil.move(run.path, place)
        config = place / "config.yaml"
        config.write_text(config.read_text().replace(f"arm: {theirs}\n", f"arm: {ours}\n"))
    return runs_dir


def test_what_two_studies_share_stands_once_with_the_seeds_of_both(two: Path) -> None:
    [joined] = together([results(name, two) for name in ("heads", "more")])
    seeds = {arm: [run.seed for run in runs] for arm, runs in joined.arms.items() if runs}
    assert seeds == {"base": [1, 2, 3], "A1": [1, 2], "E1": [1, 2, 3], "more/A1": [1]}
    assert "plain" not in joined.arms, "the same config as base"
    assert [*joined.compare().study.columns] == ["h", "positions", "steps"], "a key has one column"


def test_a_joined_table_begins_with_the_metric_of_the_first_study(two: Path) -> None:
    for name, metrics in (("heads", "{bleu: {}, ppl: {}}"), ("more", "{ppl: {}, chrf: {}, bleu: {label: other}}")):
        with (two.parent / "experiments" / name / "study.yaml").open("a") as file:
            file.write(f"metrics: {metrics}\n")
    [joined] = together([results(name, two) for name in ("heads", "more")])
    assert {name: metric.label for name, metric in joined.study.metrics.items()} == {
        "bleu": "BLEU",
        "ppl": "PPL",
        "chrf": "chrf",
    }
    assert joined.study.headline.name == "bleu"


def test_two_arms_of_one_study_stay_two_though_only_their_texts_differ(two: Path, make_run: Make) -> None:
    file = two.parent / "experiments" / "more" / "study.yaml"
    file.write_text("baseline: en\narms: {en: [], de: [], deb: [model.heads=16]}\nagainst: {deb: de}\n")
    paper = {"arms": {"en": {"ppl": 4.0}, "de": {"ppl": 5.0}}}
    file.with_name("paper.yaml").write_text(yaml.safe_dump(paper))
    shutil.rmtree(two / "more")
    for theirs, ours, text in (("base", "en", "aa"), ("base", "de", "bb"), ("A2", "deb", "bb")):
        run = make_run(theirs, 4, text=text)
        place = two / "more" / ours / run.path.name
        shutil.move(run.path, place)
        config = place / "config.yaml"
        config.write_text(config.read_text().replace(f"arm: {theirs}\n", f"arm: {ours}\n"))
    [joined] = together([results(name, two) for name in ("more", "heads")])
    assert {arm for arm, runs in joined.arms.items() if runs} >= {"en", "de", "deb"}
    assert joined.study.reference("deb") == "de"
    assert (joined.study.paper.arms["en"]["ppl"], joined.study.paper.arms["de"]["ppl"]) == (4.0, 5.0)


def test_in_a_joined_table_seeds_that_were_added_until_decided_are_corrected_for(two: Path) -> None:
    file = two.parent / "experiments" / "more" / "study.yaml"
    file.write_text(file.read_text() + "seeds: {least: 2, most: 5, until: decided}\n")
    [joined] = together([results(name, two) for name in ("heads", "more")])
    assert joined.compare().correction == results("more", two).compare().correction
    assert "for all looks" in joined.compare().correction


def test_each_arm_is_held_against_what_its_own_study_holds_it_against(two: Path) -> None:
    [joined] = together([results(name, two) for name in ("heads", "more")])
    assert joined.study.baseline == "base"
    assert {arm: joined.study.reference(arm) for arm in joined.study.arms} == {
        "base": "base",
        "A1": "base",
        "A2": "base",
        "E1": "base",
        "long": "base",
        "more/A1": "base",
        "wide": "E1",
    }


def test_studies_of_other_settings_have_tables_of_their_own(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (two / "more").glob("*/*/config.yaml"):
        file.write_text(file.read_text().replace("data: grammar", "data: files"))
    assert [one.study.name for one in together([results(name, two) for name in ("heads", "more")])] == ["heads", "more"]
    report(["heads", "more", "--markdown", "-"])
    assert re.findall(r"\*\*(.*?)\*\*\n", capsys.readouterr().out) == ["Heads and positions", "More positions"]
    with pytest.raises(UserError, match="different settings"):
        report(["heads", "more", "--svg", "-"])


def test_of_runs_of_any_studies_the_arms_are_what_differs(two: Path) -> None:
    found = results_of_runs([f"{two}/more/*", f"{two}/heads/A1/seed1-*"])
    assert {arm: len(runs) for arm, runs in found.arms.items()} == {
        "more/plain": 1,
        "heads/A1": 1,
        "more/E1": 1,
        "more/A1": 1,
    }
    assert found.study.baseline == "more/plain"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["heads", "haeds"], "there is no study 'haeds'"),
        (["heads", "more", "--serve"], "--serve is for one study"),
        (["heads", "sweeps/table3.yaml"], "sweeps/table3.yaml is a sweep"),
        (["runs/no*"], r"runs/no\*: no run lies there"),
        (["heads", "more", "--baseline", "A9"], "has no arm 'A9'"),
    ],
)
def test_what_cannot_stand_together_is_one_sentence(two: Path, words: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        report(words)
