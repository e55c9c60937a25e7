"""A run whose processes hold a share of the model each is the run of one."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from tests import warm

from etude.errors import UserError
from etude.runs.metrics_file import read_metrics
from etude.runs.run_dir import RunDir
from etude.trained.checkpoint import read_checkpoint
from etude.training.run import train
from etude.training.sharded import shard

from .conftest import Freeze, cluster, distance, found, in_processes, update, with_plain_descent

BUDGET = ["model.dropout=0.0", "budget.max_steps=4", "budget.val_every=2"]
FSDP = ["trainer.devices=2", "trainer.strategy=fsdp"]

pytestmark = pytest.mark.usefixtures("importable")


def together(*names: str) -> list[str]:
    return [f"+callbacks.{name}._target_=together.{name}" for name in names]


def finish(run: RunDir) -> RunDir:
    """Train a run in as many processes as it asks for."""
    done = in_processes(run)
    assert run.finished, done.stderr
    return run


def shares(run: RunDir) -> list[dict[str, int]]:
    """How many numbers the first process holds, and the second."""
    return [json.loads((run.path / f"shares-{rank}.json").read_text()) for rank in (0, 1)]


def gradient_norms(run: RunDir) -> list[dict[str, float]]:
    [file] = run.path.glob("csv/**/metrics.csv")
    with file.open(newline="") as lines:
        rows = [{k: float(v) for k, v in row.items() if v and "grad" in k} for row in csv.DictReader(lines)]
    return [row for row in rows if row]


@pytest.fixture(scope="module")
def undisturbed(runs: Freeze) -> RunDir:
    """By Adam, in two shares, with the checkpoint of its second step kept."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
        patched.syspath_prepend(str(Path(__file__).parent))
        return finish(runs("undisturbed", *BUDGET, *FSDP, *together("KeepsHalf", "CountsShares")))


def goes_on(run: RunDir, half: Path) -> RunDir:
    """Finish a run from the checkpoint of its second step."""
    run.checkpoint.parent.mkdir()
    shutil.copyfile(half, run.checkpoint)
    return finish(run)


@pytest.mark.slow(minutes=1)
def test_two_shares_make_the_run_of_one_process_and_that_of_ddp(runs: Freeze) -> None:
    """Losses, weights, gradients, which are clipped, and translations."""
    setting = [*BUDGET, "trainer.gradient_clip_val=0.5", "callbacks=[gradient_norms]", "logger=csv"]
    setting += ["callbacks.gradient_norms.every=1", "trainer.micro_batches=2"]
    ways = {"alone": [], "ddp": ["trainer.devices=2"], "fsdp": FSDP}
    alone, *others = (finish(with_plain_descent(runs(name, *setting, *way))) for name, way in ways.items())
    assert min(row["grad_2.0_norm_total"] for row in gradient_norms(alone)) > 0.5
    for run in others:
        assert distance(update(alone), update(run)) < 1e-5
        for split in ("valid", "test"):
            assert run.result()[split]["perplexity"] == pytest.approx(alone.result()[split]["perplexity"], rel=1e-5)
        losses = [
            [float(row["loss"] or row["valid_loss"]) for row in read_metrics(r.metrics_file)] for r in (alone, run)
        ]
        assert losses[1] == pytest.approx(losses[0], rel=1e-5)
        for one, other in zip(gradient_norms(alone), gradient_norms(run), strict=True):
            assert other == pytest.approx(one, rel=1e-4, abs=1e-6)
        assert run.hypotheses_file.read_text() == alone.hypotheses_file.read_text()
        assert run.path.name == alone.path.name


@pytest.mark.slow
def test_each_process_holds_its_share_and_no_more(undisturbed: RunDir) -> None:
    first, second = shares(undisturbed)
    assert first["parameters"] + second["parameters"] == undisturbed.result()["parameters"]
    assert first["moments"] + second["moments"] == 2 * undisturbed.result()["parameters"]
    assert second["parameters"] > 0.45 * undisturbed.result()["parameters"]


@pytest.mark.slow
def test_a_checkpoint_is_one_file_of_whole_tensors_as_one_process_writes_it(undisturbed: RunDir, runs: Freeze) -> None:
    alone = finish(runs("whole", *BUDGET))
    one, other = read_checkpoint(alone.checkpoint), read_checkpoint(undisturbed.checkpoint)
    assert one.keys() == other.keys()
    for weights in (one["state_dict"], other["state_dict"]):
        tied = [weights[f"model.embedding.{name}_table.weight"] for name in ("source", "target", "output")]
        assert len({tensor.data_ptr() for tensor in tied}) == 1
    assert {k: v.shape for k, v in one["state_dict"].items()} == {k: v.shape for k, v in other["state_dict"].items()}
    states, shared = one["optimizer_states"][0], other["optimizer_states"][0]
    assert states["param_groups"] == shared["param_groups"]
    assert {(n, k, v.shape) for n, s in states["state"].items() for k, v in s.items()} == {
        (n, k, v.shape) for n, s in shared["state"].items() for k, v in s.items()
    }
    assert distance(update(alone), update(undisturbed)) < 1e-4


@pytest.mark.slow
def test_a_run_goes_on_exactly_and_in_as_many_processes_as_there_are_shared_or_not(
    undisturbed: RunDir, runs: Freeze
) -> None:
    half = undisturbed.path / "half.ckpt"
    again = goes_on(runs("again", *BUDGET, *FSDP, *together("KeepsHalf", "CountsShares")), half)
    for what in ("weights", "moments", "hypotheses"):
        assert found(again)[what] == found(undisturbed)[what]
    assert shares(again) == shares(undisturbed)
    for name, way in (("one-half", []), ("ddp-half", ["trainer.devices=2"])):
        other = goes_on(runs(name, *BUDGET, *way, *together("KeepsHalf", "CountsShares")), half)
        assert distance(update(undisturbed), update(other)) < 1e-4


@pytest.mark.slow
def test_averages_are_shared_out_too_and_go_on(runs: Freeze) -> None:
    setting = [*BUDGET, "callbacks=[ema]", "callbacks.ema.decay=0.5"]
    alone = finish(runs("ema", *setting, *together("KeepsHalf")))
    shared = goes_on(runs("ema-fsdp", *setting, *FSDP, *together("KeepsHalf")), alone.path / "half.ckpt")
    assert distance(update(alone), update(shared)) < 1e-4
    average, last = (read_checkpoint(shared.checkpoint)[name] for name in ("state_dict", "current_model_state"))
    assert distance(average, last) > 1e-3
    kept = ["averaging.checkpoints=2", "averaging.every=1"]
    alone, shared = finish(runs("mean", *BUDGET, *kept)), finish(runs("mean-fsdp", *BUDGET, *kept, *FSDP))
    assert distance(update(alone), update(shared)) < 1e-4


@pytest.mark.slow
def test_a_number_that_is_none_in_the_share_of_one_process_ends_the_run_in_all(runs: Freeze) -> None:
    run = finish(runs("diverged", *BUDGET, *FSDP, *together("BreaksOneShare")))
    assert run.result()["diverged"] == "a weight is no finite number at step 4"


@pytest.mark.slow
def test_machines_with_a_process_each_share_a_run_out(undisturbed: RunDir, runs: Freeze) -> None:
    run = runs(
        "nodes", *BUDGET, "+trainer.num_nodes=2", "trainer.strategy=fsdp", *together("KeepsHalf", "CountsShares")
    )
    done = warm.run(warm.TRAINING, run.path, ranks=cluster(machines=2))
    assert run.finished, done.stderr
    assert found(run)["weights"] == found(undisturbed)["weights"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part", "why"),
    [
        (
            "scalar",
            ["model/residual=rezero", "model/norm=none"],
            r"cannot shard encoder\.layers\.0\.attention_residual\.alpha, which is a scalar",
        ),
        (
            "bypass",
            ["model.encoder._target_=together.Bypasses"],
            "gathers the weights of a layer when it is called, and this model uses one without calling its layer",
        ),
    ],
)
def test_a_model_that_cannot_be_shared_out_is_refused_with_the_way_out(
    name: str, part: list[str], why: str, runs: Freeze
) -> None:
    done = in_processes(runs(name, *BUDGET, *FSDP, *part))
    assert done.returncode == 2
    assert re.search(rf"etude: trainer\.strategy=fsdp {why}: say trainer\.strategy=ddp", done.stderr)


def test_a_pytorch_that_cannot_share_a_checkpoint_out_is_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.distributed.tensor, "distribute_tensor", lambda tensor, device_mesh, placements: tensor)
    with pytest.raises(UserError, match=r"needs a newer PyTorch than .*: say trainer\.strategy=ddp"):
        shard(torch.nn.Linear(2, 2), mesh=None)


@pytest.mark.slow
def test_a_process_without_a_sentence_of_a_micro_batch_takes_part_all_the_same(runs: Freeze) -> None:
    setting = [*BUDGET, "trainer.micro_batches=20", "budget.source_tokens=60", "budget.target_tokens=60"]
    alone, shared = (finish(with_plain_descent(runs(f"few-{len(way)}", *setting, *way))) for way in ([], FSDP))
    assert distance(update(alone), update(shared)) < 1e-5


def test_a_share_of_one_process_is_the_whole(runs: Freeze) -> None:
    alone, shared = runs("one-ddp", *BUDGET), runs("one-fsdp", *BUDGET, "trainer.strategy=fsdp")
    train(alone)
    train(shared)
    assert found(alone)["weights"] == found(shared)["weights"]
