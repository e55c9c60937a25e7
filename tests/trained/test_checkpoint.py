"""Checkpoints: nothing in them is executed, and a torn one is told as one sentence."""

import pickle
from pathlib import Path

import pytest
import torch

from etude.errors import UserError
from etude.store.training_dir import TrainingDir
from etude.trained.checkpoint import hash_weights, model_weights, read_checkpoint
from etude.training.checkpoints import DirectIO


def test_a_missing_checkpoint_names_the_way_out(tmp_path):
    with pytest.raises(UserError, match=r"there is no checkpoint at .*last.ckpt: train the run first"):
        read_checkpoint(tmp_path / "last.ckpt")


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


def checkpoint_of(training, written_by):
    training.checkpoint.parent.mkdir(parents=True)
    DirectIO(TrainingDir(Path(written_by))).save_checkpoint({"state_dict": {}}, training.checkpoint)
    return training.checkpoint


def test_another_trainings_checkpoint_is_refused(tmp_path):
    path = checkpoint_of(TrainingDir(tmp_path / "0123456789"), "abcdef0123")
    with pytest.raises(UserError, match=rf"{path} is of another training, abcdef0123: put its own in its place"):
        read_checkpoint(path)


@pytest.mark.parametrize("name", ["0123456789", "0123456789-other-2", "training"])
def test_a_training_that_was_put_aside_or_copied_keeps_its_checkpoint(tmp_path, name):
    read_checkpoint(checkpoint_of(TrainingDir(tmp_path / name), "0123456789"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool])
def test_the_hash_of_weights_is_of_their_names_and_bits(dtype):
    weights = {"a": torch.ones(2, 3).to(dtype), "b": torch.tensor(1).to(dtype)}
    assert hash_weights(weights) == hash_weights(dict(reversed(weights.items())))
    others = (weights | {"b": torch.tensor(0).to(dtype)}, {"a": weights["a"], "c": weights["b"]})
    assert len({hash_weights(one) for one in (weights, *others)}) == 3


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
