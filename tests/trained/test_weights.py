"""Which checkpoints a run ends with, and what their mean is."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.store.training_dir import TrainingDir
from etude.tasks import build
from etude.trained.weights import averaged_checkpoints, mean_weights

TINY = ["model.d_model=8", "model.d_ff=16", "model.heads=2", "model.n_layers=1"]


def asked(run: TrainingDir, *, max_steps: int, checkpoints: int, every: int) -> dict[int, Path]:
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
    files = asked(TrainingDir(tmp_path), max_steps=100_000, checkpoints=5, every=1500)
    assert list(files) == [94_000, 95_500, 97_000, 98_500, 100_000]
    assert files[98_500] == tmp_path / "checkpoints" / "step-00098500.ckpt"


def test_none_are_kept_where_averaging_is_off(tmp_path):
    assert asked(TrainingDir(tmp_path), max_steps=10, checkpoints=0, every=1) == {}
    assert resolve(compose([]))["averaging"]["checkpoints"] == 0


def test_the_full_scale_spaces_them_as_ten_minutes_of_the_papers_base_model():
    seconds_per_step = 0.4
    assert resolve(compose(["scale=full"]))["averaging"]["every"] * seconds_per_step == 600


def test_an_average_may_reach_back_to_the_first_step(tmp_path):
    assert list(asked(TrainingDir(tmp_path), max_steps=10, checkpoints=4, every=3)) == [1, 4, 7, 10]


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
