"""Runs of other code: told apart, kept, and put aside only on request."""

import pytest
from filelock import FileLock
from omegaconf import OmegaConf

from etude.config.compose import compose
from etude.config.identity import freeze, freeze_all
from etude.files import write_json
from etude.runs import code as code_module
from etude.runs import stale
from etude.runs.code import code_fingerprint
from etude.runs.environment import libraries_of
from etude.runs.provenance import Code, code_changed, code_of, notes_on_libraries


@pytest.fixture
def job(tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"line {k}\tzeile {k}\n" for k in range(9)))
    return [f"data.tsv={tmp_path / 'a.tsv'}", f"runs_dir={tmp_path / 'runs'}", "data=files", "data.holdout=2"]


def aside(run):
    return sorted(path.name for path in run.path.parent.glob(".stale/*"))


def test_the_fingerprint_follows_the_classes_that_a_config_names_but_for_its_logger(job):
    found = set()
    for more in ([], ["model/position=rope"], ["logger=none"]):
        run = freeze(compose([*job, *more]))
        found.add(code_fingerprint(run.config()))
    config = run.config() | {
        "parts": [{"_target_": "etude.model.norm.RmsNorm"}, {"_target_": "etude.training.run.main"}]
    }
    assert len(found | {code_fingerprint(config)}) == 3


def test_a_result_is_of_this_code_or_of_other_or_nobody_knows(job):
    run = freeze(compose(job))
    assert code_of({"code": code_fingerprint(run.config())}, run.config()) is Code.SAME
    assert code_of({"code": "0123456789"}, run.config()) is Code.OTHER
    assert code_of({}, run.config()) is Code.UNKNOWN


def test_runs_of_code_that_was_later_shown_to_give_the_same_results_are_of_this_code(job, monkeypatch):
    run = freeze(compose(job))
    today = code_fingerprint(run.config())
    shown = {"1111111111": "2222222222", "2222222222": today}
    monkeypatch.setattr(code_module, "_same_code", lambda: shown)
    assert code_of({"code": "1111111111"}, run.config()) is Code.SAME
    write_json(run.environment_file, {"code": "2222222222"})
    assert not code_changed(run, run.config())
    shown[today] = "3333333333"  # of the code that made a record, say
    assert code_fingerprint(run.config()) == "3333333333"
    assert code_of({"code": today}, run.config()) is code_of({"code": "3333333333"}, run.config()) is Code.SAME


def test_a_run_that_goes_on_knows_whether_the_code_has_changed(job):
    run = freeze(compose(job))
    assert not code_changed(run, run.config())
    for begun_by, changed in ((code_fingerprint(run.config()), False), ("0123456789", True), (None, True)):
        write_json(run.environment_file, {"code": begun_by})
        assert code_changed(run, run.config()) is changed


@pytest.mark.parametrize("code", ["0123456789", None])
def test_a_finished_run_of_other_code_is_kept_unless_asked(job, code):
    run = freeze(compose(job))
    run.write_result({"code": code})
    before = {path: path.stat().st_mtime_ns for path in run.path.iterdir()}
    assert freeze(compose(job)).finished
    assert {path: path.stat().st_mtime_ns for path in run.path.iterdir()} == before


@pytest.mark.parametrize("code", ["0123456789", None])
def test_rerun_puts_it_aside_with_all_that_it_holds(job, code):
    run = freeze(compose(job))
    run.write_result({"code": code})
    again = freeze(compose([*job, "stale=rerun"]))
    assert again.path == run.path
    assert not again.finished
    assert aside(run) == [f"{run.path.name}-{code or 'unknown'}"]
    kept = run.path.parent / ".stale" / aside(run)[0]
    assert {path.name for path in kept.iterdir()} >= {"config.yaml", "overrides.txt", "result.json"}


def test_what_was_put_aside_twice_is_there_twice(job):
    for _ in range(2):
        run = freeze(compose(job))
        run.write_result({"code": "0123456789"})
        freeze(compose([*job, "stale=rerun"]))
    assert aside(run) == [f"{run.path.name}-0123456789", f"{run.path.name}-0123456789-2"]


def test_rerun_scores_by_the_metrics_that_were_asked_for_or_added_before(job):
    run = freeze(compose([*job, "metrics=[bleu,chrf]"]))
    run.write_result({"code": "0123456789", "test": {"perplexity": 3.0, "bleu": 40.0, "chrf": 60.0, "ter": 30.0}})
    again = freeze(compose([*job, "stale=rerun"]))
    assert not again.finished
    asked = compose([*job, "metrics=[bleu,chrf,ter]"])
    assert again.config()["metrics"] == OmegaConf.to_container(asked.metrics)


def test_rerun_that_is_typed_again_before_it_is_finished_scores_by_the_same_metrics(job):
    run = freeze(compose([*job, "metrics=[bleu,chrf]"]))
    run.write_result({"code": "0123456789", "test": {"bleu": 40.0, "chrf": 60.0, "ter": 30.0}})
    first, again = (freeze(compose([*job, "stale=rerun"])).config()["metrics"] for _ in range(2))
    assert again == first
    assert aside(run) == [f"{run.path.name}-0123456789"]


def test_of_two_launchers_at_once_one_puts_a_run_aside(job, monkeypatch):
    run = freeze(compose(job))
    run.write_result({"code": "0123456789"})

    def other_is_faster(held):
        monkeypatch.undo()
        freeze(compose([*job, "stale=rerun"]))
        return False

    monkeypatch.setattr(stale, "is_locked", other_is_faster)
    assert not freeze(compose([*job, "stale=rerun"])).finished
    assert aside(run) == [f"{run.path.name}-0123456789"]


def test_a_metric_that_is_no_longer_asked_for_makes_no_run_one_of_other_code(job):
    run = freeze(compose([*job, "metrics=[bleu,chrf]"]))
    run.write_result({"code": code_fingerprint(run.config())})
    assert freeze(compose([*job, "stale=rerun"])).finished


def test_rerun_leaves_a_run_of_this_code_alone(job):
    run = freeze(compose(job))
    run.write_result({"code": code_fingerprint(run.config())})
    assert freeze_all([[*job, "stale=rerun"]], compose)[0].finished
    assert aside(run) == []


def test_rerun_starts_a_half_finished_run_of_other_code_from_the_beginning(job):
    run = freeze(compose(job))
    write_json(run.environment_file, {"code": "0123456789"})
    run.checkpoint.parent.mkdir()
    run.checkpoint.touch()
    again = freeze_all([[*job, "stale=rerun"]], compose)[0]
    assert again.path == run.path
    assert not again.checkpoint.exists()
    assert again.config_file.is_file()


@pytest.mark.parametrize("file", ["lock_file", "claim_file"])
def test_a_run_that_somebody_is_training_or_about_to_stays_where_it_is(job, file):
    run = freeze(compose(job))
    write_json(run.environment_file, {"code": "0123456789"})
    with FileLock(getattr(run, file)):
        freeze(compose([*job, "stale=rerun"]))
    assert run.environment_file.exists()


def test_asking_for_it_is_no_other_run(job):
    assert freeze(compose([*job, "stale=rerun"])).path == freeze(compose(job)).path


def test_a_run_whose_class_is_not_to_be_had_here_cannot_be_checked(job, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    run = freeze(compose(job))
    text = run.config_file.read_text()
    for module in ("gone_parts", "torn_parts"):
        (tmp_path / "torn_parts.py").write_text("def (\n")
        run.config_file.write_text(text.replace("etude.model.scale.SqrtDk", f"{module}.Scale"))
        assert f"{module}.Scale" in run.config_file.read_text()
        assert code_of({"code": "0123456789"}, run.config()) is Code.UNCHECKED
    run.config_file.write_text(text.replace("etude.model.scale.SqrtDk", "etude.model.scale.OfYesterday"))
    assert code_of({"code": "0123456789"}, run.config()) is Code.OTHER, "étude itself is here"


def test_versions_of_libraries_that_are_mixed_are_told_with_how_many_runs_each_has_made():
    made = [{"libraries": {"torch": torch, "lightning": "2.5"}} for torch in ("2.12.0", "2.13.0", "2.12.0")]
    told = "These runs were not all made with the same torch: 2.12.0 (2), 2.13.0 (1); they may differ by rounding."
    assert notes_on_libraries([*made, {}]) == [told]
    assert notes_on_libraries(made[:1]) == []


def test_a_result_names_every_version_that_its_run_has_met():
    begun, made = ({"packages": {"torch": torch, "wandb": "0.31"}} for torch in ("2.12.0", "2.13.0"))
    assert libraries_of(made, begun)["torch"] == "2.12.0, 2.13.0"
    assert libraries_of(made, {})["torch"] == libraries_of(made, made)["torch"] == "2.13.0"
    assert "wandb" not in libraries_of(made, {})
