import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from etude.report.compare import compare
from etude.report.comparison import Compared
from etude.report.render.html import run_files
from etude.report.render.html.data import data
from etude.report.render.html.document import as_json
from etude.report.render.html.run_files import analyses
from etude.report.selection import Selection

Fabricate = Callable[..., Compared]
ANALYSIS = {"heads": [{"attention": "encoder", "layer": 1, "head": 1, "change": 0.1}], "maps": [{"source": ["a"]}]}


def test_an_arm_names_only_what_it_changes_in_the_baselines_config(fabricate: Fabricate) -> None:
    found = data(fabricate(3, 1, 5))
    assert found["config"] == {"model.heads": "0"}
    assert [arm["config"] for arm in found["arms"]] == [{}, {"model.heads": "1"}, {"model.heads": "2"}]


def test_what_an_arm_changes_is_told_as_its_value_in_the_words_of_the_table(fabricate: Fabricate) -> None:
    compared = fabricate(3, 1, 5)
    written = [[], ["model.heads=${heads:16}"], ["model.heads=2", "model.d_ff=${width:8}", "~model.norm"]]
    arms = [replace(arm, overrides=words) for arm, words in zip(compared.arms, written, strict=True)]
    told = [arm["facts"]["what is changed"] for arm in data(replace(compared, arms=arms))["arms"]]
    assert told == ["nothing", "h 1", "h 2  model.d_ff=${width:8}  ~model.norm"]


def test_the_page_opens_on_the_metric_with_which_the_study_begins(fabricate: Fabricate) -> None:
    compared = fabricate(2, 2, 5)
    for metrics in (["ppl", "bleu"], ["bleu", "ppl"]):
        study = replace(compared.study, metrics={name: compared.study.metrics[name] for name in metrics})
        choosers = {name: found["choosers"] for name, found in data(replace(compared, study=study))["figures"].items()}
        assert [[*choosers[name]["y"][1]] for name in ("forest", "cost")] == [metrics, metrics]


def test_the_variances_are_told_as_those_of_the_metric_whose_sentences_are_resampled(fabricate: Fabricate) -> None:
    compared = fabricate(2, 3, 20)
    assert compared.study.headline.name == "ppl"
    assert compared.baseline.variances
    told = data(compared)["arms"][0]["facts"]["variance of BLEU, seeds / test sets"]
    assert told == " / ".join(
        f"{one:.2f}" for one in (compared.baseline.variances.seeds, compared.baseline.variances.test_set)
    )


def again(compared: Compared) -> Compared:
    """The same runs as they lie there now."""
    return compare(compared.study, Selection([run for arm in compared.arms for run in arm.runs], [], []))


def test_a_run_that_goes_on_shows_its_curves_already(fabricate: Fabricate) -> None:
    compared = fabricate(2, 1, 5)
    base, arm = compared.arms
    running = replace(arm, runs=[], unfinished=arm.runs, means={}, sentences=None, against=None)
    found = data(replace(compared, arms=[base, running]))
    assert found["arms"][1]["seeds"] == []
    assert [one["state"] for one in found["arms"]] == ["", "failed" if all(r.failure for r in arm.runs) else "begun"]
    diverged = replace(running, unfinished=[], diverged=arm.runs)
    assert data(replace(compared, arms=[base, diverged]))["arms"][1]["state"] == "diverged"
    assert found["arms"][1]["curves"]["loss"]["seeds"] == 1
    assert "A1" in found["first_picked"]


def test_runs_without_their_text_have_a_page_without_samples(fabricate: Fabricate) -> None:
    compared = fabricate(2, 2, 5)
    for run in (run for arm in compared.arms for run in arm.runs):
        run.run_dir.references_file.unlink()
    found = data(again(compared))
    assert found["samples"] == {"of": 0, "sentences": []}
    assert found["buckets"] == []


def test_translations_that_went_missing_leave_the_others(fabricate: Fabricate) -> None:
    compared = fabricate(3, 1, 30)
    compared.arms[1].runs[0].run_dir.hypotheses_file.unlink()
    found = data(again(compared))["samples"]["sentences"]
    assert found
    assert all("A1" not in one["by"] and "A2" in one["by"] for one in found)


def test_what_is_no_number_is_not_known(fabricate: Fabricate) -> None:
    compared = fabricate(2, 1, 5)
    run = compared.arms[1].runs[0]
    run.run_dir.write_result(run.result | {"seconds": float("nan"), "flops": "many"})
    study = compared.study
    found = data(compare(study, Selection([replace(run, result=run.run_dir.result()), *compared.arms[0].runs], [], [])))
    facts = found["arms"][1]["facts"]
    assert facts["minutes of training"] == "–"
    assert "training FLOPs" not in facts, "they are known of no arm"
    assert "NaN" not in as_json(found)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"heads": 1}'])
def test_an_analysis_that_is_none_is_passed_over(fabricate: Fabricate, text: str) -> None:
    compared = fabricate(1, 2, 5)
    first, second = compared.baseline.runs
    (first.run_dir.path / "analysis.json").write_text(text)
    assert analyses(compared.arms) == {}
    (second.run_dir.path / "analysis.json").write_text(json.dumps(ANALYSIS))
    assert analyses(compared.arms) == {"base": {"seed": 2} | ANALYSIS}


def test_maps_without_room_are_left_out_and_heads_are_not(
    fabricate: Fabricate, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = fabricate(2, 1, 5)
    for arm in compared.arms:
        (arm.runs[0].run_dir.path / "analysis.json").write_text(json.dumps(ANALYSIS))
    monkeypatch.setattr(run_files, "ROOM", 30)
    assert analyses(compared.arms) == {"base": {"seed": 1} | ANALYSIS, "A1": {"seed": 1} | ANALYSIS | {"maps": []}}


@pytest.mark.parametrize(("key", "shown"), [("gradient_clip_val", True), ("devices", False)])
def test_of_the_trainer_an_arm_shows_what_may_change_a_result(fabricate: Fabricate, key: str, shown: bool) -> None:
    compared = fabricate(2, 1, 5)
    base, arm = compared.arms
    runs = [
        [replace(arm.runs[0], config=arm.runs[0].config | {"trainer": {key: n}})] for n, arm in enumerate((base, arm))
    ]
    base, arm = replace(base, runs=runs[0]), replace(arm, runs=runs[1])
    found = data(replace(compared, baseline=base, arms=[base, arm]))["arms"][1]["config"]
    assert (f"trainer.{key}" in found) == shown
