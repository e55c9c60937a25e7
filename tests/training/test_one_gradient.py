"""However a batch is shared out, among micro batches and processes, the update is the same."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from torch import Tensor

from etude.data.batching import Batch, collate_micro_batch
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.training.build import training_data
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
def test_a_process_that_fails_ends_the_run_with_its_error_and_no_hang(
    runs: Freeze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = in_processes(run)
    assert done.returncode == 1
    assert "the second process has had enough" in done.stderr
    assert not run.finished
