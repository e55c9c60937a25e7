"""Runs on a GPU: several processes make the run of one, and compiled code learns what the model does."""

import pytest
import torch
from tests import warm

from etude.training.run import train

from .conftest import Freeze, cluster, distance, update, with_plain_descent

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

ON_GPU = ["trainer=gpu", "precision=32-true", "model.dropout=0"]
ONE = [*ON_GPU, "budget.max_steps=1", "budget.val_every=1"]


def test_two_machines_with_a_gpu_each_make_the_run_of_one(runs: Freeze) -> None:
    alone = with_plain_descent(runs("alone", *ONE))
    shared = with_plain_descent(runs("shared", *ONE, "+trainer.num_nodes=2"))
    train(alone)
    # NCCL refuses two processes on one GPU, unless it takes them for two machines.
    ranks = [{**own, "NCCL_HOSTID": own["RANK"]} for own in cluster(machines=2)]
    done = warm.run(warm.TRAINING, shared.path, ranks=ranks)
    assert done.returncode == 0, done.stderr
    assert distance(update(alone), update(shared)) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["true", "reduce-overhead"])
def test_a_compiled_run_is_the_same_run_and_learns_the_same(mode: str, runs: Freeze) -> None:
    plain, compiled = (runs(f"compile-{switch}", *ON_GPU, f"trainer.compile={switch}") for switch in ("false", mode))
    assert compiled.path.name == plain.path.name
    expected, found = train(plain), train(compiled)
    assert found["test"]["perplexity"] == pytest.approx(expected["test"]["perplexity"], rel=1e-4)
    assert found["steps"] == expected["steps"]
