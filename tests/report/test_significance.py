"""How an arm is tested against its reference: trainings that are shared or diverged, and what an arm borrows."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from scipy import stats

from etude.report import report, results
from etude.report.comparison import Against, Difference
from etude.report.statistics import Scores, moderate, moderated_test
from etude.store.run_dir import RunDir

from .conftest import declared

Make = Callable[..., RunDir]

REFERENCES = [f"the {word} man sees a {word} dog in the garden" for word in ("old", "young", "good", "new")] * 20
PPL = {"base": [2.0, 2.1, 2.05], "A1": [2.5, 2.53, 2.51]}


@pytest.fixture
def make_decoded(make_run: Make) -> Callable[[str, int, int], RunDir]:
    """Fabricates a run of the base's training that is decoded by another beam, with so many words wrong."""

    def make(arm: str, seed: int, wrong: int) -> RunDir:
        position = {"_target_": "etude.model.position.sinusoidal"}
        config = {"model": {"heads": 8, "position": position}, "decoding": {"beam": 1}}
        said = [line if n >= wrong else line.replace("man", "woman") for n, line in enumerate(REFERENCES)]
        more = {"translations": said, "references": REFERENCES}
        return make_run(arm, seed, ppl=PPL["base"][seed - 1], changed=config if arm != "base" else {}, **more)

    return make


def against(runs_dir: Path, arm: str) -> Against:
    found = {one.arm: one.against for one in results("heads", runs_dir).compare().arms}[arm]
    assert found is not None
    return found


def notes(runs_dir: Path) -> str:
    return "\n".join(report("heads", runs_dir, {}).rows.sentences)


def starred(difference: Difference) -> tuple[bool, bool]:
    return difference.star, difference.tied


def test_another_decoding_of_the_same_trainings_is_tested_on_its_differences(
    runs_dir: Path, make_decoded: Callable[[str, int, int], RunDir]
) -> None:
    """The seeds are far apart and the beam always costs about as much, which unpaired seeds would not show."""
    for seed, wrong in enumerate((4, 20, 40), 1):
        make_decoded("base", seed, wrong)
        make_decoded("A2", seed, wrong + 12 + seed)
    bleu = against(runs_dir, "A2").differences["bleu"]
    assert bleu.star
    assert bleu.spread is None
    assert "The same trainings as what they are held against: A2; tested on the differences" in notes(runs_dir)


def test_one_training_has_one_perplexity_which_is_no_finding_and_lends_its_spread_once(
    runs_dir: Path, make_run: Make, make_decoded: Callable[[str, int, int], RunDir]
) -> None:
    for seed in (1, 2, 3):
        for arm, wrong in (("base", 4), ("A2", 9), ("E1", 12)):
            make_decoded(arm, seed, wrong + seed)
        make_run("A1", seed, ppl=PPL["A1"][seed - 1])
    ppl = against(runs_dir, "A2").differences["ppl"]
    assert (ppl.test.difference, ppl.test.p, ppl.holm) == (0.0, None, None)
    assert "the training is that of base, and the score the same at each seed" in ppl.test.why_not
    base, other = (Scores(arm, [math.log(value) for value in PPL[arm]]) for arm in ("base", "A1"))
    found = against(runs_dir, "A1").differences["ppl"]
    assert found.test == moderated_test(other, base, moderate([base, other]))
    assert found.holm == found.test.p, "what was not tested makes no correction stronger"


def test_seeds_are_paired_whatever_the_order_of_the_runs(
    runs_dir: Path, make_decoded: Callable[[str, int, int], RunDir]
) -> None:
    for seed, wrong in enumerate((4, 20, 40), 1):
        make_decoded("base", seed, wrong)
        make_decoded("A2", seed, wrong + 12 + seed)
    found = results("heads", runs_dir)
    shuffled = replace(found, selection=replace(found.selection, runs=found.selection.runs[::-1]))
    [first, second] = (next(arm.against for arm in one.compare().arms if arm.arm == "A2") for one in (found, shuffled))
    assert first == second


def test_of_a_shared_training_with_other_seeds_nothing_is_tested(
    runs_dir: Path, make_decoded: Callable[[str, int, int], RunDir]
) -> None:
    for seed in (1, 2, 3):
        make_decoded("base", seed, 4 * seed)
        if seed > 1:
            make_decoded("A2", seed, 4 * seed + 12)
    found = against(runs_dir, "A2").differences
    assert {name: one.test.p for name, one in found.items()} == {"ppl": None, "bleu": None}
    assert "the trainings are those of base, and only some of the seeds are (A2)" in notes(runs_dir)


def test_arms_of_the_same_trainings_differ_by_what_they_do_at_the_seeds_that_both_have(
    runs_dir: Path, make_decoded: Callable[[str, int, int], RunDir]
) -> None:
    for seed in (1, 2, 3):
        make_decoded("base", seed, 4 * seed)
    for arm, seeds in (("A1", (1, 2, 3)), ("A2", (1,))):
        for seed in seeds:
            make_decoded(arm, seed, 4 * seed + 12)
    alone, whole = (against(runs_dir, arm).differences for arm in ("A2", "A1"))
    assert alone["ppl"].test.difference == 0.0
    assert alone["ppl"].test.interval is alone["bleu"].test.interval is None
    scores = {run.arm: run.score("test.bleu") or 0.0 for run in results("heads", runs_dir).runs if run.seed == 1}
    assert alone["bleu"].test.difference == pytest.approx(scores["A2"] - scores["base"])
    assert whole["bleu"].test.interval
    told = notes(runs_dir)
    assert "The same trainings as what they are held against: A1; tested" in told
    assert "and not the same seeds: A2; Δ is that of the seeds in common" in told
    assert "is taken to vary as the others do" not in told


def test_the_seeds_that_are_left_of_an_arm_that_diverged_have_no_interval(runs_dir: Path, make_run: Make) -> None:
    for arm in ("base", "A1", "A2"):
        for seed, ppl in enumerate(PPL["base"], 1):
            make_run(arm, seed, ppl=math.nan if arm == "A1" and seed > 1 else ppl)
    assert against(runs_dir, "A1").differences["ppl"].test.interval is None
    assert against(runs_dir, "A2").differences["ppl"].test.interval
    assert "seeds 2 and 3 of A1 diverged, and the others do not stand for it" in notes(runs_dir)
    assert "of an arm with one seed" not in notes(runs_dir)


@pytest.mark.parametrize("arm", ["base", "A1", "A2"])
def test_where_a_seed_diverged_the_others_give_no_star_and_show_no_tie(
    arm: str, runs_dir: Path, make_run: Make
) -> None:
    folder = runs_dir.parent / "experiments" / "heads"
    (folder / "paper.yaml").write_text(
        yaml.safe_dump({"arms": {"base": {"ppl": 5.0}, "A1": {"ppl": 6.0}, "A2": {"ppl": 5.0}}})
    )
    declared(runs_dir, agreement={"large": 0.03, "margin": 0.05})
    ppl = {"base": [2.0, 2.001, 2.002], "A1": [2.5, 2.501, 2.502], "A2": [2.0, 2.002, 2.001]}
    for name, values in ppl.items():
        for seed, value in enumerate(values, 1):
            make_run(name, seed, ppl=math.nan if (name, seed) == (arm, 2) else value)
    hit = {"base": {"A1", "A2"}, "A1": {"A1"}, "A2": {"A2"}}[arm]
    whole = {"A1": (True, False), "A2": (False, True)}
    found = {name: starred(against(runs_dir, name).differences["ppl"]) for name in whole}
    assert found == {name: (False, False) if name in hit else marks for name, marks in whole.items()}
    assert f"seed 2 of {arm} diverged, and the others do not stand for it" in notes(runs_dir)


def test_what_an_arm_borrows_does_not_depend_on_the_order_of_the_arms(runs_dir: Path, make_run: Make) -> None:
    """E1 was tested on another text, where A2 is held against it; in either order its spread counts."""
    study, found = runs_dir.parent / "experiments" / "heads" / "study.yaml", []
    content = yaml.safe_load(study.read_text()) | {"against": {"A2": "E1"}}
    for seed in (1, 2, 3):
        make_run("base", seed, ppl=PPL["base"][seed - 1])
        make_run("A1", seed, ppl=PPL["A1"][seed - 1])
        make_run("A2", seed, ppl=3.0 + seed / 10, store="s1")
        make_run("E1", seed, ppl=4.0 + seed, store="s1")
    for order in (("base", "A1", "A2", "E1"), ("base", "E1", "A1", "A2")):
        arms = {arm: content["arms"][arm] for arm in order}
        study.write_text(yaml.safe_dump(content | {"arms": arms}, sort_keys=False))
        found.append(against(runs_dir, "A1").differences["ppl"].test)
    assert found[0].interval == pytest.approx(found[1].interval)
    scores = {"base": PPL["base"], "A1": PPL["A1"], "A2": [3.1, 3.2, 3.3], "E1": [5.0, 6.0, 7.0]}
    logs = {arm: Scores(arm, [math.log(value) for value in values]) for arm, values in scores.items()}
    assert found[0].interval == pytest.approx(
        moderated_test(logs["A1"], logs["base"], moderate(logs.values())).interval
    )


def test_the_oracle_of_differences_is_scipys(runs_dir: Path, make_decoded: Callable[[str, int, int], RunDir]) -> None:
    """A metric without sentences, read from the result, of two decodings of the same trainings."""
    declared(runs_dir, metrics={"chrf": {"key": "test.chrf", "better": "higher"}})
    values = {"base": [40.0, 45.0, 50.0], "A2": [40.5, 45.4, 50.8]}
    for arm, scores in values.items():
        for seed, score in enumerate(scores, 1):
            run = make_decoded(arm, seed, 4 if arm == "base" else 9)
            run.result_file.write_text(run.result_file.read_text().replace('"bleu"', f'"chrf": {score}, "bleu"'))
    found = against(runs_dir, "A2").differences["chrf"].test
    expected = stats.ttest_rel(values["A2"], values["base"])
    assert found.p == pytest.approx(expected.pvalue)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))
