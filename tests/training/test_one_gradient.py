"""However a batch is shared out, among micro batches and processes, the update is the same."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightning import Trainer
from torch import Tensor

from etude.data.batching import Batch, collate_micro_batch
from etude.launch.process import train_command
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.training.build import training_data
from etude.training.checkpoints import Checkpoints
from etude.training.module import TrainingModule
from etude.training.run import train

from .conftest import Freeze, distance, in_processes, update, with_plain_descent

STEPS = 3
BUDGET = [f"budget.max_steps={STEPS}", "budget.source_tokens=60", "budget.target_tokens=60"]


def asked(runs: Freeze, name: str, dropout: float, *trainer: str) -> RunDir:
    run = runs(name, *BUDGET, f"model.dropout={dropout}", *(f"trainer.{setting}" for setting in trainer))
    return with_plain_descent(run)


@pytest.fixture(scope="module")
def whole(runs: Freeze) -> RunDir:
    """Every batch as one micro-batch."""
    run = asked(runs, "whole", 0.0)
    train(run)
    return run


def test_the_micro_batches_hold_different_counts_of_tokens(whole: RunDir) -> None:
    """Otherwise the claims below would hold for a mean of means too."""
    config = whole.config()
    split = build.token_store(config).split("train")
    stream = training_data(config, build.token_store(config), start_step=0).train_dataloader()
    rows = [stream.micro_batch(step, 0).rows for step in range(STEPS)]
    for pieces in (2, 3):
        counts = [[collate_micro_batch(split, batch, p, pieces).target_tokens for p in range(pieces)] for batch in rows]
        assert any(len(set(count)) > 1 for count in counts)


@pytest.mark.parametrize("micro_batches", [2, 3, 50])
def test_micro_batches_make_the_update_of_the_whole_batch(micro_batches: int, runs: Freeze, whole: RunDir) -> None:
    """Fifty are more than a batch has sentences."""
    run = asked(runs, f"micro-{micro_batches}", 0.0, f"micro_batches={micro_batches}")
    result = train(run)
    assert distance(update(whole), update(run)) < 1e-5
    assert result["tokens"] == whole.result()["tokens"]


@pytest.mark.slow
def test_two_processes_make_the_update_of_one(runs: Freeze, whole: RunDir) -> None:
    run = asked(runs, "two", 0.0, "devices=2")
    done = in_processes(run)
    assert run.finished, done.stderr
    assert distance(update(whole), update(run)) < 1e-5
    assert run.result()["tokens"] == whole.result()["tokens"]
    rows = [[row.split(",") for row in each.metrics_file.read_text().splitlines()[1:]] for each in (whole, run)]
    for one, other in zip(*rows, strict=True):
        assert [float(x or 0) for x in one[3:4] + one[6:]] == pytest.approx(
            [float(x or 0) for x in other[3:4] + other[6:]], rel=1e-5
        )


@pytest.mark.slow
def test_old_gradients_are_dropped_before_the_forward_pass_of_a_batch_and_kept_between_its_pieces(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, step = [], TrainingModule.training_step

    def watched(self: TrainingModule, batch: Batch, batch_idx: int) -> Tensor:
        held.append(any(parameter.grad is not None for parameter in self.parameters()))
        return step(self, batch, batch_idx)

    monkeypatch.setattr(TrainingModule, "training_step", watched)
    train(asked(runs, "dropped", 0.0, "micro_batches=2"))
    assert held == [False, True] * STEPS


def test_dropout_depends_on_the_micro_batch_not_on_who_computes_it(runs: Freeze, whole: RunDir) -> None:
    """Two processes draw what two micro batches of one process draw."""
    micro, two = asked(runs, "drawn", 0.4, "micro_batches=2"), asked(runs, "drawn-two", 0.4, "devices=2")
    train(micro)
    done = in_processes(two)
    assert two.finished, done.stderr
    assert distance(update(micro), update(two)) < 1e-5
    assert distance(update(micro), update(whole)) > 0.1


@pytest.mark.slow
def test_all_processes_go_on_from_the_checkpoint_that_the_first_one_finds(
    runs: Freeze, whole: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*BUDGET, "model.dropout=0.0", "budget.val_every=2"]
    run = with_plain_descent(runs("late", *settings, "trainer.devices=2"))
    half = run.own_training.path / "half.ckpt"
    save = Checkpoints.save

    def keeping(self: Checkpoints, trainer: Trainer) -> None:
        save(self, trainer)
        if trainer.global_step == 2:
            shutil.copyfile(self.path, half)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", keeping)
        train(with_plain_descent(runs("alone", *settings)))
    run.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    half.rename(run.checkpoint)
    said = in_processes(run).stderr
    assert run.finished, said
    assert said.count("going on from step 2 of 3") == 2
    assert distance(update(whole), update(run)) < 1e-5


@pytest.mark.slow
def test_a_process_that_fails_ends_the_run_with_its_error_and_no_hang(runs: Freeze, tmp_path: Path) -> None:
    run = asked(runs, "failing", 0.0, "devices=2")
    (tmp_path / "failing.py").write_text(
        "import os\nfrom etude.training.loss import LabelSmoothing\n\n"
        "class Failing(LabelSmoothing):\n    calls = 0\n\n"
        "    def __call__(self, logits, targets):\n        self.calls += 1\n"
        "        if os.environ['RANK'] == '1' and self.calls == 2:\n"
        "            raise RuntimeError('the second process has had enough')\n"
        "        return super().__call__(logits, targets)\n".replace("\\\n", "\n")
    )
    config: dict[str, Any] = run.config()
    config["loss"]["_target_"] = "failing.Failing"
    run.config_file.write_text(yaml.safe_dump(config))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(train_command(run), capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert done.returncode == 1
    assert "the second process has had enough" in done.stderr
    assert not run.finished
