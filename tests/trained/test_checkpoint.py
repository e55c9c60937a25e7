"""Checkpoints: nothing in them is executed, and a torn one is told as one sentence."""

import pickle

import pytest
import torch

from etude.errors import UserError
from etude.runs.run_dir import RunDir
from etude.trained.checkpoint import model_weights, read_checkpoint
from etude.training.checkpoints import DirectIO


def test_a_missing_checkpoint_names_the_way_out(tmp_path):
    with pytest.raises(UserError, match=r"there is no checkpoint at .*last.ckpt: train the run first"):
        read_checkpoint(tmp_path / "last.ckpt")


def test_where_the_run_is_finished_the_way_out_is_to_delete_it(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(UserError, match=rf"delete {tmp_path} and train again, or name"):
        read_checkpoint(RunDir(tmp_path).checkpoint)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04 torn"])
def test_a_torn_checkpoint_is_recognised(tmp_path, content):
    path = tmp_path / "last.ckpt"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not a whole checkpoint"):
        read_checkpoint(path)


def test_half_a_checkpoint_is_recognised(tmp_path):
    path = tmp_path / "last.ckpt"
    torch.save({"state_dict": {"model.weight": torch.randn(200, 200)}}, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match="is not a whole checkpoint"):
        read_checkpoint(path)


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
def test_a_checkpoint_with_flipped_bytes_is_recognised(tmp_path, at):
    path = tmp_path / "last.ckpt"
    torch.save({"state_dict": {"model.weight": torch.randn(200, 200)}}, path)
    content = bytearray(path.read_bytes())
    start = int(at * len(content))
    content[start : start + 200] = bytes(byte ^ 255 for byte in content[start : start + 200])
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not a whole checkpoint"):
        read_checkpoint(path)


def checkpoint_of(run, written_by):
    run.checkpoint.parent.mkdir(parents=True)
    DirectIO(RunDir(run.path.with_name(written_by))).save_checkpoint({"state_dict": {}}, run.checkpoint)
    return run.checkpoint


def test_another_runs_checkpoint_is_refused(tmp_path):
    path = checkpoint_of(RunDir(tmp_path / "seed1-0123456789"), "seed2-abcdef0123")
    with pytest.raises(UserError, match=rf"{path} is of another run, seed2-abcdef0123: put its own in its place"):
        read_checkpoint(path)


@pytest.mark.parametrize("name", ["seed1-0123456789", "seed1-0123456789-fedcba9876", "kept"])
def test_a_run_that_was_put_aside_or_renamed_keeps_its_checkpoint(tmp_path, name):
    read_checkpoint(checkpoint_of(RunDir(tmp_path / name), "seed1-0123456789"))


def test_a_checkpoint_from_before_it_named_its_run_is_read(tmp_path):
    path = RunDir(tmp_path / "seed1-0123456789").checkpoint
    path.parent.mkdir(parents=True)
    torch.save({"state_dict": {}}, path)
    read_checkpoint(path)


def test_a_strangers_pickle_is_not_executed(tmp_path):
    marker = tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> tuple:
            return marker.touch, ()

    path = tmp_path / "last.ckpt"
    path.write_bytes(pickle.dumps({"state_dict": Evil()}))
    with pytest.raises(UserError):
        read_checkpoint(path)
    torch.save({"state_dict": Evil()}, path)
    with pytest.raises(UserError):
        read_checkpoint(path)
    assert not marker.exists()


def test_something_else_that_torch_saved_is_refused(tmp_path):
    path = tmp_path / "last.ckpt"
    torch.save({"weights": torch.ones(2)}, path)
    with pytest.raises(UserError, match="holds no weights under 'state_dict'"):
        read_checkpoint(path)


def test_the_models_weights_are_the_modules_without_the_prefix():
    weight = torch.ones(2)
    assert model_weights({"state_dict": {"model.a.b": weight, "other": weight}}) == {"a.b": weight}
