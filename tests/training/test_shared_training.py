"""One training serves all runs whose weights are decided by the same, whichever study or decoding asks for it."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from tests.training.conftest import Freeze, found, in_processes, killed_at

from etude.files import read_json, write_json
from etude.store.lock import Busy
from etude.store.provenance import Code
from etude.store.records import read_run
from etude.store.run_dir import RunDir
from etude.training import run as training
from etude.training.run import train

BEAM = ["decoding=beam", "decoding.beam=2"]
A1 = ["experiment=table3/A1", "model.heads=1"]
MINE = ["study=mine", "arm=narrow", *A1[1:]]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[RunDir]:
    """The runs for which something was trained."""
    asked, real = [], training.fit

    def fit(run: RunDir, *more: Any) -> Any:
        asked.append(run)
        return real(run, *more)

    monkeypatch.setattr(training, "fit", fit)
    return asked


def same(one: RunDir, other: RunDir) -> bool:
    """Whether two runs found the same to the last bit; the names of study and arm are left out."""
    left, right = ({**found(run), "result": None} for run in (one, other))
    names = ("study", "arm", "seconds", "decoding_seconds", "tokens_per_second")
    results = [{key: value for key, value in run.result().items() if key not in names} for run in (one, other)]
    return left == right and results[0] == results[1]


def test_another_beam_scores_the_same_weights_and_trains_nothing(
    runs: Freeze, trained: list[RunDir], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    greedy, beam, alone = runs("beams"), runs("beams", *BEAM), runs("beam_alone", *BEAM)
    train(greedy), train(beam)
    assert trained == [greedy]
    assert f"{beam.own_training.path} is trained already" in caplog.messages
    assert beam.checkpoint.samefile(greedy.checkpoint), "no byte of it lies there twice"
    train(alone)
    assert same(beam, alone)
    assert beam.result()["id"] != greedy.result()["id"]


def test_another_test_set_scores_the_same_weights_and_trains_nothing(
    runs: Freeze, tmp_path: Path, trained: list[RunDir]
) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.tsv").write_text(f"a b {name}\ta c\n" * 6)
    one, other, alone, held_out = (
        runs(folder, *([f"data.test.tsv={tmp_path / name}.tsv"] if name else []))
        for folder, name in (("tests", "one"), ("tests", "other"), ("test_alone", "other"), ("tests", ""))
    )
    assert one.training == other.training != held_out.training, "what is held out is not trained on"
    train(one), train(other)
    assert trained == [one]
    train(alone)
    assert same(other, alone)
    assert other.id != one.id
    assert other.references_file.read_text() == "a c\n" * 6
    assert other.sources_file.read_text() == "a b other\n" * 6


def test_the_same_run_of_another_study_is_scored_again_from_the_same_weights(
    runs: Freeze, trained: list[RunDir]
) -> None:
    first, second = runs("studies", *A1), runs("studies", *MINE)
    assert first.id == second.id
    train(first)
    result = train(second)
    assert (result["study"], result["arm"]) == ("mine", "narrow")
    assert result == second.result()
    assert same(first, second)
    assert trained == [first]


def test_what_another_run_has_begun_is_gone_on_with(runs: Freeze, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, other, alone = runs("begun"), runs("begun", *BEAM), runs("begun_alone", *BEAM)
    killed_at(7, begun, monkeypatch)
    assert not begun.finished
    train(other)
    train(alone)
    assert same(other, alone)


def test_a_run_is_whole_without_its_training_and_a_training_without_its_runs(
    runs: Freeze, trained: list[RunDir], tmp_path: Path
) -> None:
    run = runs("whole")
    train(run)
    before, texts = found(run), run.hypotheses_file.read_text()
    copy = RunDir(tmp_path.joinpath(*run.path.parts[-3:]))
    shutil.copytree(run.path, copy.path)
    assert found(copy) == before, "as rsync -aL copies it"
    shutil.rmtree(run.path)
    again = runs("whole")
    train(again)
    assert found(again) == before
    assert trained == [run]
    shutil.rmtree(again.own_training.path)
    assert (again.metrics_file.read_text(), again.hypotheses_file.read_text()) == (copy.metrics_file.read_text(), texts)
    assert all(file.stat().st_size for file in (again.tokenizer_file, again.environment_file))


@pytest.mark.parametrize("why", ["deleted", "damaged", "another's"])
def test_weights_that_are_not_there_are_trained_again_to_the_same_bits(
    why: str, runs: Freeze, trained: list[RunDir]
) -> None:
    name = f"lost-{why[:3]}"
    first, second = runs(name), runs(name, *BEAM)
    train(first)
    before = found(first)
    if why == "deleted":
        first.checkpoint.unlink()
    elif why == "damaged":
        damaged = bytearray(first.checkpoint.read_bytes())
        damaged[len(damaged) // 2] ^= 255
        first.checkpoint.write_bytes(damaged)
    else:
        trained_file = first.own_training.trained_file
        write_json(trained_file, read_json(trained_file) | {"weights": "0" * 64})
    train(second)
    assert trained == [first, second]
    assert found(first) == before
    assert read_run(first).code is Code.SAME


def test_what_other_code_has_trained_is_scored_and_marked(runs: Freeze) -> None:
    first, second = runs("code"), runs("code", *BEAM)
    train(first)
    trained_file = first.own_training.trained_file
    write_json(trained_file, read_json(trained_file) | {"results_version": 0})
    assert train(second)["results_version"] == [0, first.result()["results_version"]]
    assert read_run(second).code is Code.OTHER


def test_another_seed_or_model_shares_nothing(runs: Freeze, trained: list[RunDir]) -> None:
    different = [runs("nothing", *BEAM, *change) for change in ([], ["seed=2"], ["model.dropout=0.2"])]
    for run in different:
        train(run)
    assert len({run.training for run in different}) == 3
    assert trained == different


def test_two_runs_do_not_train_the_same_at_once(runs: Freeze, trained: list[RunDir]) -> None:
    first, second = runs("at_once"), runs("at_once", *BEAM)
    with FileLock(first.own_training.lock_file), pytest.raises(Busy, match=r"is training .* for another run"):
        train(second)
    assert not trained
    train(second)
    with FileLock(first.own_training.lock_file):
        train(first)
    assert first.finished, "where nothing is left to train, nobody needs the lock"


@pytest.mark.parametrize("other", [["study=mine"], ["study=mine", *BEAM]])
def test_other_metrics_are_no_other_code(runs: Freeze, other: list[str]) -> None:
    name = f"metrics-{len(other)}"
    first, second = runs(name, "metrics=bleu"), runs(name, "metrics=[bleu,chrf]", *other)
    train(first)
    assert train(second)["test"]["chrf"] >= 0
    assert read_run(second).code is Code.SAME


def test_how_often_it_is_validated_changes_no_weight_and_so_no_run(runs: Freeze) -> None:
    often, seldom = runs("often", "budget.val_every=2"), runs("seldom", "budget.val_every=5")
    assert often.id == seldom.id
    train(often), train(seldom)
    ours, theirs = found(often), found(seldom)
    for what in ("weights", "moments", "hypotheses"):
        assert ours[what] == theirs[what], what
    assert often.result()["test"] == seldom.result()["test"]


def test_where_a_callback_acts_on_validations_their_number_counts(runs: Freeze) -> None:
    stopping = ["callbacks=early_stopping"]
    one, other = (runs("stopping", *stopping, f"budget.val_every={every}") for every in (2, 5))
    assert one.id != other.id


@pytest.mark.slow
def test_several_processes_score_what_is_trained_already(runs: Freeze) -> None:
    first, devices = runs("processes", *A1), ["trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"]
    train(first)
    before = first.own_training.trained_file.stat().st_mtime_ns
    second = runs("processes", *MINE, *devices)
    done = in_processes(second)
    assert done.returncode == 0, done.stderr
    assert second.finished
    assert first.own_training.trained_file.stat().st_mtime_ns == before
    assert same(first, second)
