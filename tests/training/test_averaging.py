"""The mean of the last checkpoints: which they are, what it is, and that neither a kill nor a tie spoils it."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning import Trainer
from torch import nn

from etude.config.compose import compose
from etude.config.identity import resolve
from etude.errors import UserError
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.tasks.perplexity import negative_log_likelihood, perplexity
from etude.training.averaging import averaged_checkpoints, final_weights, mean_weights
from etude.training.build import load_trained
from etude.training.checkpoints import model_weights, read_checkpoint
from etude.training.metrics_writers import read_metrics
from etude.training.run import train

TINY = ["model.d_model=8", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "trainer=cpu", "logger=none"]


def asked(run: RunDir, *, max_steps: int, checkpoints: int, every: int) -> dict[int, Path]:
    config = {"budget": {"max_steps": max_steps}, "averaging": {"checkpoints": checkpoints, "every": every}}
    return averaged_checkpoints(run, config)


def saved(folder: Path, weights: list[dict[str, torch.Tensor]]) -> list[Path]:
    """Checkpoints of a module whose model has these weights."""
    files = [folder / f"{index}.ckpt" for index in range(len(weights))]
    for file, state in zip(files, weights, strict=True):
        torch.save({"state_dict": {f"model.{name}": value for name, value in state.items()}}, file)
    return files


# Which checkpoints


def test_they_end_with_the_last_step_and_lie_so_many_steps_apart(tmp_path):
    files = asked(RunDir(tmp_path), max_steps=100_000, checkpoints=5, every=1500)
    assert list(files) == [94_000, 95_500, 97_000, 98_500, 100_000]
    assert files[98_500] == tmp_path / "checkpoints" / "step-00098500.ckpt"


def test_none_are_kept_where_averaging_is_off(tmp_path):
    assert asked(RunDir(tmp_path), max_steps=10, checkpoints=0, every=1) == {}
    assert resolve(compose([]))["averaging"]["checkpoints"] == 0


def test_the_full_scale_spaces_them_as_ten_minutes_of_the_papers_base_model():
    seconds_per_step = 0.4
    assert resolve(compose(["scale=full"]))["averaging"]["every"] * seconds_per_step == 600


def test_an_average_may_reach_back_to_the_first_step(tmp_path):
    assert list(asked(RunDir(tmp_path), max_steps=10, checkpoints=4, every=3)) == [1, 4, 7, 10]


# What the mean is


def test_the_mean_is_that_of_every_weight(tmp_path):
    generator = torch.Generator().manual_seed(0)
    states = [{"a": torch.randn(3, 4, generator=generator), "b": torch.randn(2, generator=generator)} for _ in range(5)]
    mean = mean_weights(saved(tmp_path, states))
    assert list(mean) == ["a", "b"]
    for name, value in mean.items():
        expected = np.mean([state[name].double().numpy() for state in states], axis=0).astype(np.float32)
        assert value.dtype == torch.float32
        np.testing.assert_array_equal(value.numpy(), expected)


def test_the_sum_is_in_double_precision(tmp_path):
    """In single precision the two small weights would drown in the large one."""
    values = [2.0**25, 1.0, 1.0, -(2.0**25)]
    mean = mean_weights(saved(tmp_path, [{"a": torch.tensor([value])} for value in values]))
    assert mean["a"].item() == 0.5


def test_the_mean_of_one_is_that_one_bit_for_bit(tmp_path):
    weights = {"a": torch.randn(50), "b": torch.randn(50, dtype=torch.float64)}
    mean = mean_weights(saved(tmp_path, [weights]))
    assert all(torch.equal(mean[name], value) and mean[name].dtype == value.dtype for name, value in weights.items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tied_weights_stay_tied_and_are_counted_once(tmp_path, dtype):
    config = resolve(compose([*TINY, "model/tying=all"]))
    models = [build.model(config, 20).to(dtype) for _ in range(3)]
    expected = np.mean([model.embedding.output_table.weight.detach().double().numpy() for model in models], axis=0)
    fresh = build.model(config, 20).to(dtype)
    fresh.load_state_dict(mean_weights(saved(tmp_path, [model.state_dict() for model in models])))
    tables = fresh.embedding.source_table, fresh.embedding.target_table, fresh.embedding.output_table
    assert tables[0].weight is tables[1].weight is tables[2].weight
    np.testing.assert_allclose(tables[0].weight.detach().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 torn"])
def test_a_missing_or_torn_checkpoint_is_one_sentence_that_names_it(tmp_path, content):
    files = saved(tmp_path, [nn.Linear(2, 2).state_dict() for _ in range(2)])
    files[1].unlink()
    if content is not None:
        files[1].write_bytes(content)
    with pytest.raises(UserError, match=r"1.ckpt"):
        mean_weights(files)


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


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


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


def test_the_result_is_that_of_the_mean_and_the_curve_that_of_the_run(plain, runs):
    averaged = runs("averaged", "averaging.checkpoints=3", "averaging.every=4")
    results = plain.result(), train(averaged)
    assert names(averaged) == ["last.ckpt", "step-00000002.ckpt", "step-00000006.ckpt", "step-00000010.ckpt"]
    assert same(*(model_weights(read_checkpoint(run.checkpoint)) for run in (plain, averaged)))
    curves = [[(row["step"], row["valid_loss"]) for row in read_metrics(run.metrics_file)] for run in (plain, averaged)]
    assert curves[0] == curves[1]
    assert results[0]["valid"]["perplexity"] != results[1]["valid"]["perplexity"]
    transformer = build.model(averaged.config(), results[1]["vocabulary"])
    transformer.load_state_dict(weights_of(averaged))
    store = build.token_store(averaged.config())
    batches = build.evaluation_batches(averaged.config(), store.split("valid"))
    assert perplexity(*negative_log_likelihood(transformer, batches)) == results[1]["valid"]["perplexity"]


def test_a_run_that_was_killed_averages_the_same_checkpoints(runs, monkeypatch):
    averaging = ["averaging.checkpoints=4", "averaging.every=2"]
    straight, killed = runs("straight", *averaging), runs("killed", *averaging)
    expected = train(straight)

    class Killed(BaseException):
        pass

    def die(self, row):  # the validation of step 6 has been written down, its checkpoint not yet
        if row["step"] == 6 and "valid_loss" in row:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("etude.training.metrics_writers.LogSink.write", die)
        with pytest.raises(Killed):
            train(killed)
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


@pytest.mark.parametrize("told", ["has gone", "is torn or damaged"])
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


def test_evaluate_and_translate_use_the_mean(runs):
    run = runs("used", "averaging.checkpoints=2", "averaging.every=4")
    train(run)
    _, transformer, _ = load_trained(run)
    assert same(transformer.state_dict(), weights_of(run))
