"""Runs that end with the mean of their last checkpoints, which no kill spoils."""

import logging

import pytest
import torch
from lightning import Callback, Trainer

from etude.errors import UserError
from etude.store.metrics_file import read_metrics
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.tasks.perplexity import perplexity, sum_tokens
from etude.trained.checkpoint import model_weights, read_checkpoint
from etude.trained.load import load_trained
from etude.trained.weights import final_weights
from etude.training.run import train

from .conftest import killed_at, same

# What a run does with it


@pytest.fixture(scope="module")
def plain(runs) -> RunDir:
    """A finished run without averaging."""
    run = runs("plain")
    train(run)
    return run


def weights_of(run: RunDir) -> dict[str, torch.Tensor]:
    return final_weights(run, run.config())


def names(run: RunDir) -> list[str]:
    return sorted(file.name for file in run.checkpoint.parent.iterdir())


def test_a_run_without_averaging_leaves_no_file_more_and_ends_with_its_last_weights(plain):
    assert names(plain) == ["last.ckpt"]
    assert same(weights_of(plain), model_weights(read_checkpoint(plain.checkpoint)))


def test_an_average_of_one_is_the_last_checkpoint(plain, runs):
    one = runs("one", "averaging.checkpoints=1")
    results = plain.result(), train(one)
    assert names(one) == ["last.ckpt", "step-00000010.ckpt"]
    assert same(weights_of(plain), weights_of(one))
    assert results[0]["test"] == results[1]["test"]
    assert results[0]["id"] != results[1]["id"]


def test_the_result_is_that_of_the_mean_which_is_what_is_loaded_and_the_curve_that_of_the_run(plain, runs):
    averaged = runs("averaged", "averaging.checkpoints=3", "averaging.every=4")
    results = plain.result(), train(averaged)
    assert names(averaged) == ["last.ckpt", "step-00000002.ckpt", "step-00000006.ckpt", "step-00000010.ckpt"]
    assert same(*(model_weights(read_checkpoint(run.checkpoint)) for run in (plain, averaged)))
    curves = [[(row["step"], row["valid_loss"]) for row in read_metrics(run.metrics_file)] for run in (plain, averaged)]
    assert curves[0] == curves[1]
    assert results[0]["valid"]["perplexity"] != results[1]["valid"]["perplexity"]
    transformer = build.model(averaged.config(), results[1]["vocabulary"])
    transformer.load_state_dict(weights_of(averaged))
    _, loaded, _ = load_trained(averaged)
    assert same(loaded.state_dict(), transformer.state_dict())
    store = build.token_store(averaged.config())
    batches = build.evaluation_batches(averaged.config(), store.split("valid"))
    assert perplexity(*sum_tokens(transformer, batches)[:2]) == results[1]["valid"]["perplexity"]


def test_a_run_that_was_killed_averages_the_same_checkpoints(runs, monkeypatch):
    averaging = ["averaging.checkpoints=4", "averaging.every=2"]
    straight, killed = runs("straight", *averaging), runs("killed", *averaging)
    expected = train(straight)
    # The validation of step 6 has been written down by then, its checkpoint not yet.
    killed_at(6, killed, monkeypatch, writer="LogSink", row_of="valid_loss")
    assert names(killed) == ["last.ckpt", "step-00000004.ckpt", "step-00000006.ckpt"]
    result = train(killed)
    assert names(killed) == names(straight)
    assert same(weights_of(killed), weights_of(straight))
    assert result["test"] == expected["test"]


def test_a_step_in_several_micro_batches_is_saved_once(runs, monkeypatch):
    saved_steps = []
    save = Trainer.save_checkpoint

    def counted(self, path, weights_only=None):
        if weights_only:
            saved_steps.append(self.global_step)
        save(self, path, weights_only=weights_only)

    monkeypatch.setattr(Trainer, "save_checkpoint", counted)
    train(runs("pieces", "averaging.checkpoints=2", "averaging.every=4", "trainer.micro_batches=3"))
    assert saved_steps == [6, 10]


@pytest.mark.parametrize("told", ["has gone", "is incomplete or damaged"])
def test_a_run_that_lost_one_of_them_starts_from_the_beginning_and_says_so(runs, caplog, told):
    run = runs(told.replace(" ", "-"), "averaging.checkpoints=2", "averaging.every=2")
    train(run)
    before = weights_of(run)
    run.result_file.unlink()
    gone = run.checkpoint.parent / "step-00000008.ckpt"
    if told == "has gone":
        gone.unlink()
    else:
        gone.write_bytes(gone.read_bytes()[:-1000])
        with pytest.raises(UserError, match=f"{gone} is not a whole checkpoint"):
            weights_of(run)
    with caplog.at_level(logging.WARNING):
        train(run)
    assert f"{gone}, which is to be averaged with later ones, {told}: starting from the beginning" in caplog.text
    assert same(weights_of(run), before)


def test_a_run_on_its_way_has_no_mean_yet(runs):
    run = runs("begun", "averaging.checkpoints=2")
    with pytest.raises(UserError, match=r"there is no checkpoint at .*step-00000009.ckpt: train the run first"):
        weights_of(run)


class Ends(Callback):
    """Ends a run for a reason of its own."""

    def __init__(self, *, at: int) -> None:
        self.at = at

    def on_train_batch_end(self, trainer: Trainer, *rest: object) -> None:
        trainer.should_stop = trainer.should_stop or trainer.global_step == self.at


@pytest.mark.parametrize("at", [4, 8])
def test_a_run_that_a_callback_ends_before_its_last_checkpoint_says_what_to_leave_out(at, runs):
    """Also when it is typed again: it stays ended, and its mean would be of fewer than it is named for."""
    ending = [f"+callbacks.mine._target_={__name__}.Ends", f"+callbacks.mine.at={at}"]
    run = runs(f"ended-{at}", "averaging.checkpoints=2", "averaging.every=3", *ending)
    told = rf"a callback has ended \S+ at step {at}, and .*checkpoints=2 reaches to step 10: say averaging.check"
    for begin in (train, train, load_trained):
        with pytest.raises(UserError, match=told):
            begin(run)
    assert not run.finished
    assert train(runs(f"alone-{at}", *ending))["steps"] == at


def test_a_full_disk_is_one_sentence_and_the_run_goes_on_later(plain, runs, monkeypatch):
    save = torch.save

    def full(checkpoint, file):
        if "step-00000008" in file.name:
            file.write(b"half a ")
            raise OSError(28, "No space left on device")
        save(checkpoint, file)

    run = runs("full", "averaging.checkpoints=2", "averaging.every=2")
    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", full)
        with pytest.raises(UserError, match=r"cannot write .*step-00000008.ckpt: No space left on device; free some"):
            train(run)
    assert names(run) == ["last.ckpt", "previous.ckpt"]
    train(run)
    assert names(run) == ["last.ckpt", "step-00000008.ckpt", "step-00000010.ckpt"]
    assert same(*(model_weights(read_checkpoint(each.checkpoint)) for each in (plain, run)))
