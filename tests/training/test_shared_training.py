"""One training serves all runs whose weights are decided by the same, whichever study or decoding asks for it."""

import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import torch
from filelock import FileLock
from tests.training.conftest import Freeze, found, in_processes

from etude.errors import UserError
from etude.runs.cleaning import find_removable, remove
from etude.runs.lock import claim, is_training_locked
from etude.runs.provenance import Code
from etude.runs.records import read_run
from etude.runs.run_dir import RunDir
from etude.runs.shared_training import take_over
from etude.runs.siblings import studies_of
from etude.trained.checkpoint import read_checkpoint
from etude.training import run as training
from etude.training.rehearsal import check_device
from etude.training.run import train

BEAM = ["decoding=beam", "decoding.beam=2"]
A1 = ["experiment=table3/A1", "model.heads=1"]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[RunDir]:
    """The runs for which a step was trained, or none was left to train."""
    asked, real = [], training.fit

    def fit(run: RunDir, *more: Any) -> Any:
        asked.append(run)
        return real(run, *more)

    monkeypatch.setattr(training, "fit", fit)
    return asked


def log_of(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("etude"))


def same(one: RunDir, other: RunDir) -> bool:
    """Whether two runs found the same to the last bit; the names of study and arm are left out."""
    left, right = ({**found(run), "result": None} for run in (one, other))
    names = ("study", "arm", "seconds", "decoding_seconds", "tokens_per_second")
    results = [{key: value for key, value in run.result().items() if key not in names} for run in (one, other)]
    return left == right and results[0] == results[1]


def test_another_beam_scores_the_same_weights_and_trains_nothing(
    runs: Freeze, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    greedy, beam, alone = runs("beams"), runs("beams", *BEAM), runs("beam_alone", *BEAM)
    train(greedy)
    caplog.clear()
    train(beam)
    assert f"what decides the weights is the same as of {greedy.path}, whose training is taken over" in log_of(caplog)
    assert re.search(r"going on from step 10 of 10", log_of(caplog))
    assert beam.checkpoint.samefile(greedy.checkpoint), "no byte of it lies there twice"
    train(alone)
    assert same(beam, alone)
    assert beam.result()["id"] != greedy.result()["id"]


def test_another_test_set_scores_the_same_weights_and_trains_nothing(
    runs: Freeze, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    for name in ("one", "other"):
        (tmp_path / f"{name}.tsv").write_text(f"a b {name}\ta c\n" * 6)
    one, other, alone, held_out = (
        runs(folder, *([f"data.test.tsv={tmp_path / name}.tsv"] if name else []))
        for folder, name in (("tests", "one"), ("tests", "other"), ("test_alone", "other"), ("tests", ""))
    )
    assert one.training == other.training != held_out.training, "what is held out is not trained on"
    train(one)
    caplog.clear()
    train(other)
    assert "whose training is taken over" in log_of(caplog)
    assert other.checkpoint.samefile(one.checkpoint)
    train(alone)
    assert same(other, alone)
    assert other.id != one.id
    assert other.references_file.read_text() == "a c\n" * 6
    assert other.sources_file.read_text() == "a b other\n" * 6


def test_a_run_of_another_study_is_taken_over_with_its_result(runs: Freeze, trained: list[RunDir]) -> None:
    first, second = runs("studies", *A1), runs("studies", "study=mine", "arm=narrow", *A1[1:])
    assert first.id == second.id
    train(first)
    result = train(second)
    assert (result["study"], result["arm"]) == ("mine", "narrow")
    assert result == second.result()
    assert same(first, second)
    assert studies_of(second) == {"table3": "A1", "mine": "narrow"}
    assert trained == [first]


def test_what_is_killed_before_its_loggers_have_the_result_is_not_finished(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch, trained: list[RunDir]
) -> None:
    first, second = runs("killed", *A1), runs("killed", "study=mine", "arm=narrow", *A1[1:])
    train(first)
    recorded = []

    def record(loggers: Any, run: RunDir, *more: Any) -> None:
        recorded.append(run)
        if len(recorded) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("etude.training.shared.record", record)
    with pytest.raises(KeyboardInterrupt):
        train(second)
    assert not second.finished
    train(second)
    assert second.finished
    assert recorded == [second, second]
    assert trained == [first]


@pytest.mark.skipif(torch.cuda.is_available() or torch.backends.mps.is_available(), reason="here is a GPU")
def test_what_is_taken_over_needs_no_gpu(runs: Freeze) -> None:
    first, second = runs("no_gpu", *A1), runs("no_gpu", "study=mine", "arm=narrow", "trainer=gpu", *A1[1:])
    assert first.id == second.id
    with pytest.raises(UserError, match="finds no GPU"):
        check_device(second)
    train(first)
    check_device(second)


def test_the_result_of_a_cleaned_run_is_taken_over_and_says_how_to_get_its_weights(runs: Freeze) -> None:
    first, second = runs("emptied", *A1), runs("emptied", "study=mine", "arm=narrow", *A1[1:])
    train(first)
    for one in [*find_removable(first.path.parents[1])]:
        remove(one)
    train(second)
    with pytest.raises(UserError, match=r"was cleaned: `etude train .* runs_dir=again` trains it once more"):
        read_checkpoint(second.checkpoint)


def test_what_another_run_has_begun_is_gone_on_with(runs: Freeze, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, other, alone = runs("begun"), runs("begun", *BEAM), runs("begun_alone", *BEAM)
    with monkeypatch.context() as patched:
        patched.setattr("etude.training.module.TrainingModule.on_train_batch_end", _stop_at(6), raising=False)
        with pytest.raises(KeyboardInterrupt):
            train(begun)
    assert not begun.finished
    train(other)
    train(alone)
    assert same(other, alone)
    train(begun)
    assert begun.checkpoint.samefile(other.checkpoint)


def _stop_at(step: int) -> Any:
    def stop(self: Any, *args: Any) -> None:
        if self.trainer.global_step == step:
            raise KeyboardInterrupt

    return stop


def test_what_lies_in_one_directory_is_whole_without_the_others(runs: Freeze) -> None:
    first, second = runs("whole"), runs("whole", *BEAM)
    train(first), train(second)
    before = found(second)
    shutil.rmtree(first.path)
    assert found(second) == before


def test_what_other_code_has_trained_is_not_taken_over(runs: Freeze) -> None:
    first, second = runs("code"), runs("code", *BEAM)
    train(first)
    first.write_result(first.result() | {"results_version": 0})
    train(second)
    assert not second.checkpoint.samefile(first.checkpoint)


def test_another_seed_or_model_shares_nothing(runs: Freeze) -> None:
    first = runs("nothing")
    train(first)
    for change in ("seed=2", "model.dropout=0.2", "averaging.checkpoints=2"):
        other = runs("nothing", change, *BEAM)
        assert other.training != first.training, change
        train(other)
        assert not other.checkpoint.samefile(first.checkpoint), change


def test_two_runs_do_not_train_the_same_at_once(runs: Freeze, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    first, second = runs("at_once"), runs("at_once", *BEAM)
    locks = first.runs_dir / ".trainings"
    locks.mkdir()
    told = "another run is trained whose weights are the same: waiting for it"
    with held_elsewhere(locks / f"{first.training}.lock") as release, when_logged(told, release.set):
        train(second)
    assert told in log_of(caplog)
    with held_elsewhere(locks / f"{first.training}.lock"):
        train(first)
    assert first.finished, "where nothing is left to train nobody waits"


@contextmanager
def when_logged(message: str, do: Callable[[], None]) -> Iterator[None]:
    """Meanwhile, something is done as soon as étude logs the message."""
    handler = logging.Handler()
    handler.emit = lambda record: do() if record.getMessage() == message else None
    logging.getLogger("etude").addHandler(handler)
    yield
    logging.getLogger("etude").removeHandler(handler)


@contextmanager
def held_elsewhere(file: Path) -> Iterator[Event]:
    """Meanwhile another thread has a lock, until it is told to release it."""
    held, release = Event(), Event()

    def hold() -> None:
        with FileLock(file):
            held.set()
            release.wait(60)

    thread = Thread(target=hold)
    thread.start()
    held.wait(60)
    yield release
    release.set()
    thread.join()


@pytest.mark.parametrize("why", ["other code", "cleaned", "damaged"])
def test_what_cannot_be_taken_over_spares_nobody_the_training_nor_the_lock(runs: Freeze, why: str) -> None:
    first, second = runs(f"spares-{why[:3]}"), runs(f"spares-{why[:3]}", *BEAM)
    third = runs(f"spares-{why[:3]}", "decoding=beam", "decoding.beam=3")
    train(first)
    if why == "other code":
        first.write_result(first.result() | {"results_version": 0})
    elif why == "cleaned":
        first.checkpoint.unlink()
    else:
        damaged = bytearray(first.checkpoint.read_bytes())
        damaged[len(damaged) // 2] ^= 255
        first.checkpoint.write_bytes(damaged)
    with claim(second) as claimed:
        assert claimed
        assert is_training_locked(third)
    train(second)
    assert not (first.checkpoint.exists() and second.checkpoint.samefile(first.checkpoint))
    assert not [*second.checkpoint.parent.glob("previous.ckpt")]


def test_a_run_that_was_overtaken_goes_on_from_where_the_other_is(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = runs("overtaken"), runs("overtaken", *BEAM)
    for run, step in ((first, 4), (second, 8)):
        with monkeypatch.context() as patched:
            patched.setattr("etude.training.module.TrainingModule.on_train_batch_end", _stop_at(step), raising=False)
            with pytest.raises(KeyboardInterrupt):
                train(run)
    assert take_over(first, first.config()) == second
    assert first.checkpoint.samefile(second.checkpoint)


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
def test_several_processes_take_a_training_over_together(runs: Freeze) -> None:
    first, devices = runs("processes", *A1), ["trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"]
    train(first)
    for second in (
        runs("processes", *A1, *BEAM, *devices),
        runs("processes", "study=mine", "arm=narrow", *A1[1:], *devices),
    ):
        done = in_processes(second)
        assert done.returncode == 0, done.stderr
        assert second.checkpoint.samefile(first.checkpoint)
    assert same(first, second)
