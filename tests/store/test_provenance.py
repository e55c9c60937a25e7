"""Runs of other code: told apart, kept, and put aside only on request."""

import importlib
import json
import shutil
import sys

import pytest
from filelock import FileLock

from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache
from etude.config.freeze import freeze, freeze_all
from etude.files import write_json
from etude.store import stale
from etude.store.own_parts import hash_targets
from etude.store.provenance import Code, code_of, code_of_run, is_one_code, notes_on_code, notes_on_libraries
from etude.store.records import read_run
from etude.store.results_version import RESULTS_VERSION, merge_code, record_code
from etude.store.run_dir import RunDir

TODAY = {"results_version": RESULTS_VERSION}
OTHER = {"results_version": RESULTS_VERSION + 1}


@pytest.fixture
def job(tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"line {k}\tzeile {k}\n" for k in range(9)))
    return [f"data.tsv={tmp_path / 'a.tsv'}", f"runs_dir={tmp_path / 'runs'}", "data=files", "data.holdout=2"]


def aside(run):
    return sorted(path.name for path in run.path.parent.glob(".stale/*"))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A working folder with a package of the user's, a module beside it that it uses, and a library."""
    package, name = tmp_path / "folder" / f"mine_{tmp_path.name}", f"helper_{tmp_path.name}"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "norm.py").write_text(f"import {name}\nimport library_{name}\nclass Norm: ...\n")
    (package / "unused.py").touch()
    package.with_name(f"{name}.py").touch()
    library = package.parent / ".venv" / "site-packages" / f"library_{name}.py"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.chdir(package.parent)
    for place in (package.parent, library.parent):
        monkeypatch.syspath_prepend(place)
    importlib.invalidate_caches()
    return package


def config_of(package):
    return {"model": {"norm": {"_target_": f"{package.name}.norm.Norm"}}, "logger": {"_target_": "torn.Logger"}}


def test_the_files_that_are_loaded_from_the_working_folder_are_recorded_and_no_librarys(own):
    helper = own.with_name(own.name.replace("mine", "helper"))
    found = record_code(config_of(own))
    assert found["results_version"] == RESULTS_VERSION
    assert [*found["own_files"]] == [f"{helper.name}.py", f"{own.name}/__init__.py", f"{own.name}/norm.py"]
    assert code_of(json.loads(json.dumps(found))) is Code.SAME


def test_of_a_package_elsewhere_only_that_of_a_part_is_recorded(own, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = record_code(config_of(own))
    assert [*found["own_files"]] == [f"{own.name}/__init__.py", f"{own.name}/norm.py"]
    assert code_of(found) is Code.SAME


def test_a_run_without_parts_of_ones_own_records_no_file_of_etude(job, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert record_code(freeze(compose(job)).config()) == {**TODAY, "own_files": {}}


def test_a_changed_file_is_other_code_and_a_file_that_is_not_here_cannot_be_checked(own):
    found = record_code(config_of(own))
    loaded = {*sys.modules}
    (own / "unused.py").write_text("x = 1\n")
    assert code_of(found) is Code.SAME
    (own / "norm.py").write_text("def (\n")  # nothing is imported
    assert code_of(found) is Code.OTHER
    assert notes_on_code([found]) == [
        f"† made by other code than today's ({own.name}/norm.py), and kept; stale=rerun computes it again."
    ]
    (own / "norm.py").unlink()
    assert code_of(found) is Code.UNCHECKED
    assert f"({own.name}/norm.py)" in notes_on_code([found])[0]
    assert {*sys.modules} == loaded


@pytest.mark.parametrize(
    ("recorded", "code"),
    [
        (TODAY, Code.SAME),
        (OTHER, Code.OTHER),
        ({"results_version": [RESULTS_VERSION - 1, RESULTS_VERSION]}, Code.OTHER),
        ({}, Code.OTHER),
    ],
)
def test_a_result_is_of_this_code_or_of_other(recorded, code):
    assert code_of(recorded) is code


def test_a_run_that_goes_on_under_other_code_is_of_neither(own):
    begun = record_code(config_of(own))
    assert merge_code(begun, record_code(config_of(own))) == begun
    (own / "norm.py").write_text("class Norm: 'changed'\n")
    mixed = merge_code(begun, record_code(config_of(own)))
    assert len(mixed["own_files"][f"{own.name}/norm.py"]) == 2
    assert merge_code(mixed, record_code(config_of(own))) == mixed
    assert code_of(mixed) is Code.OTHER
    for before, number in ((OTHER, OTHER["results_version"]), ({}, None)):
        again = merge_code(before, record_code({}))
        assert again["results_version"] == [number, RESULTS_VERSION]
        assert merge_code(again, record_code({}))["results_version"] == again["results_version"]


def test_runs_are_of_one_code_if_they_agree_in_number_and_in_the_files_of_both():
    files = [{"a.py": "1", "b.py": "2"}, {"a.py": "1"}, {"a.py": "3"}]
    one, two, three = ({**TODAY, "own_files": own} for own in files)
    assert is_one_code([one, two, TODAY])
    assert not is_one_code([one, three])
    assert not is_one_code([one, OTHER])


def test_of_text_only_the_file_of_its_class_is_compared(own):
    assert [*hash_targets(config_of(own))] == [f"{own.name}/norm.py"]
    assert hash_targets({"data": {"_target_": "etude.data.grammar.GrammarCorpus"}}) == {}


def test_a_run_that_was_started_is_compared_by_its_result_or_else_by_where_it_began(job):
    run = freeze(compose(job))
    assert code_of_run(run) is None
    for begun_by, code in ((TODAY, Code.SAME), (OTHER, Code.OTHER), ({}, Code.OTHER)):
        write_json(run.environment_file, begun_by)
        assert code_of_run(run) is code
    run.write_result(TODAY)
    assert code_of_run(run) is Code.SAME


def test_a_finished_run_of_other_code_is_kept_unless_asked(job):
    run = freeze(compose(job))
    run.write_result(OTHER)
    before = {path: path.stat().st_mtime_ns for path in run.path.iterdir()}
    assert freeze(compose(job)).finished
    assert {path: path.stat().st_mtime_ns for path in run.path.iterdir()} == before


def test_rerun_puts_it_aside_with_all_that_it_holds(job):
    run = freeze(compose(job))
    run.write_result(OTHER)
    again = freeze(compose([*job, "stale=rerun"]))
    assert again.path == run.path
    assert not again.finished
    assert aside(run) == [f"{run.path.name}-other"]
    kept = RunDir(run.path.parent / ".stale" / aside(run)[0])
    assert {path.name for path in kept.path.iterdir()} >= {"config.yaml", "overrides.txt", "result.json"}


def test_rerun_puts_the_training_aside_with_all_runs_that_share_it(job):
    one, two, apart = (freeze(compose([*job, *more])) for more in ([], ["decoding.beam=2", "study=mine"], ["seed=2"]))
    assert one.training == two.training != apart.training
    one.write_result(OTHER)
    one.checkpoint.parent.mkdir()
    one.checkpoint.write_text("weights")
    freeze(compose([*job, "stale=rerun"]))
    assert not one.checkpoint.exists()
    assert not two.path.exists()
    assert apart.path.exists()
    for run in (one, two):
        [kept] = map(RunDir, run.path.parent.glob(".stale/*"))
        assert kept.checkpoint.read_text() == kept.own_training.checkpoint.read_text() == "weights"
        kept.training_link.unlink()  # where there are no links
        assert kept.checkpoint.read_text() == "weights"


def test_what_was_put_aside_twice_is_there_twice(job):
    for _ in range(2):
        run = freeze(compose(job))
        run.write_result(OTHER)
        freeze(compose([*job, "stale=rerun"]))
    assert aside(run) == [f"{run.path.name}-other", f"{run.path.name}-other-2"]


def test_of_two_launchers_at_once_one_puts_a_run_aside(job, monkeypatch):
    run, really = freeze(compose(job)), stale.runs_by_training
    run.write_result(OTHER)

    def other_is_faster(runs_dir):
        found = really(runs_dir)
        monkeypatch.undo()
        freeze(compose([*job, "stale=rerun"]))
        return found

    monkeypatch.setattr(stale, "runs_by_training", other_is_faster)
    assert not freeze(compose([*job, "stale=rerun"])).finished
    assert aside(run) == [f"{run.path.name}-other"]


def test_a_metric_that_is_no_longer_asked_for_makes_no_run_one_of_other_code(job):
    run = freeze(compose([*job, "metrics=[bleu,chrf]"]))
    run.write_result(TODAY)
    assert freeze(compose([*job, "stale=rerun"])).finished


def test_rerun_leaves_a_run_of_this_code_alone(job):
    run = freeze(compose(job))
    run.write_result(TODAY)
    assert freeze_all([[*job, "stale=rerun"]], ConfigCache())[0].finished
    assert aside(run) == []


def test_rerun_starts_a_half_finished_run_of_other_code_from_the_beginning(job):
    run = freeze(compose(job))
    write_json(run.environment_file, OTHER)
    run.checkpoint.parent.mkdir(parents=True)
    run.checkpoint.touch()
    again = freeze_all([[*job, "stale=rerun"]], ConfigCache())[0]
    assert again.path == run.path
    assert not again.checkpoint.exists()
    assert again.config_file.is_file()


@pytest.mark.parametrize("locked", ["run", "training", "other run of the training"])
def test_a_run_that_somebody_is_training_stays_where_it_is(job, locked):
    run, other = freeze(compose(job)), freeze(compose([*job, "decoding.beam=2"]))
    write_json(run.environment_file, OTHER)
    places = {"run": run, "training": run.own_training, "other run of the training": other}
    with FileLock(places[locked].lock_file):
        freeze(compose([*job, "stale=rerun"]))
    assert run.environment_file.exists()
    assert aside(run) == aside(other) == []


def test_a_result_of_other_weights_than_the_training_has_now_is_marked(job):
    run = freeze(compose(job))
    run.write_result(TODAY | {"training": run.training, "weights": "a" * 64})
    for weights, code in (("a" * 64, Code.SAME), ("b" * 64, Code.REPLACED)):
        write_json(run.own_training.trained_file, {"weights": weights, "diverged": None})
        assert read_run(run).code is code
    shutil.rmtree(run.own_training.path)
    assert read_run(run).code is Code.SAME, "nothing is known of weights that were deleted"


def test_asking_for_it_is_no_other_run(job):
    assert freeze(compose([*job, "stale=rerun"])).path == freeze(compose(job)).path


def test_versions_of_libraries_that_are_mixed_are_told_with_how_many_runs_each_has_made():
    made = [{"libraries": {"torch": torch, "lightning": "2.5"}} for torch in ("2.12.0", "2.13.0", "2.12.0")]
    told = "These runs were not all made with the same torch: 2.12.0 (2), 2.13.0 (1); they may differ by rounding."
    assert notes_on_libraries([*made, {}]) == [told]
    assert notes_on_libraries(made[:1]) == []
