"""Flags of Lightning's Trainer: handed on, refused by name, and never without an effect on which run it is."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from tests import warm

import etude.training.run
from etude.cli.main import main
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.errors import UserError
from etude.store.lock import Busy
from etude.store.metrics_file import read_metrics
from etude.trained.checkpoint import read_checkpoint
from etude.training.run import train

from .conftest import Freeze, cluster, distance, in_processes, update, with_plain_descent

ONE = ["budget.max_steps=1", "budget.val_every=1", "model.dropout=0"]


def length(moved: dict[str, torch.Tensor]) -> float:
    own = {tensor.data_ptr(): tensor for tensor in moved.values()}  # of tied weights there is one
    return float(torch.stack([tensor.double().square().sum() for tensor in own.values()]).sum().sqrt())


def test_a_gradient_is_clipped_to_the_length_asked_for_and_keeps_its_direction(runs: Freeze) -> None:
    """With plain descent at a rate of one an update is the gradient; tied weights stand twice in what moved."""
    plain, clipped = with_plain_descent(runs("plain", *ONE)), runs("clip", *ONE, "trainer.gradient_clip_val=0.01")
    with_plain_descent(clipped)
    train(plain)
    train(clipped)
    free, short = update(plain), update(clipped)
    assert distance(free, {name: value / length(short) * length(free) for name, value in short.items()}) < 1e-3
    gradients = _parameters(short, clipped.config())
    assert length(gradients) == pytest.approx(0.01, rel=1e-3)
    assert length(_parameters(free, plain.config())) > 0.01


def _parameters(moved: dict[str, torch.Tensor], config: dict) -> dict[str, torch.Tensor]:
    from etude.tasks import build

    return {name: moved[name] for name, _ in build.shapes(config).named_parameters()}


@pytest.mark.parametrize("has_bf16", [True], indirect=True)
@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_a_fused_optimizer_is_clipped_in_mixed_precision_too(
    optimizer: str, has_bf16: bool, runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths, kind = [], {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimizer]
    real = kind.step

    def step(self: torch.optim.Optimizer, closure: Callable[[], Any]) -> Any:
        def watched() -> Any:
            loss = closure()
            assert self.defaults["fused"]
            lengths.append(length({str(n): p.grad for n, p in enumerate(self.param_groups[0]["params"])}))
            return loss

        return real(self, watched)

    monkeypatch.setattr(kind, "step", step)
    train(
        runs(
            f"mixed-{optimizer}",
            *ONE,
            "precision=bf16-mixed",
            f"optimizer={optimizer}",
            "trainer.gradient_clip_val=0.01",
        )
    )
    assert lengths == [pytest.approx(0.01, rel=1e-3)]


def test_a_processor_without_units_for_bfloat16_trains_in_float32_and_says_so_once(
    has_bf16: bool, runs: Freeze, caplog: pytest.LogCaptureFixture
) -> None:
    mixed, full = (runs(f"{precision}-{has_bf16}", f"precision={precision}") for precision in ("bf16-mixed", "32-true"))
    train(mixed)
    told = [text for text in caplog.messages if "bfloat16" in text]
    assert told == ["precision=bf16-mixed: this processor has no units for bfloat16; computing in float32"][has_bf16:]
    train(full)
    assert (distance(update(mixed), update(full)) == 0) is not has_bf16


def test_a_run_in_double_precision_keeps_doubles_and_moves_as_one_in_single(runs: Freeze) -> None:
    single, double = (with_plain_descent(runs(name, *ONE, f"precision={name}")) for name in ("32-true", "64-true"))
    train(single)
    train(double)
    assert {weight.dtype for weight in read_checkpoint(double.checkpoint)["state_dict"].values()} == {torch.float64}
    assert distance(update(single), update(double)) < 1e-5


@pytest.mark.parametrize("flag", ["trainer.gradient_clip_val=1.0", "+trainer.limit_train_batches=1"])
def test_what_may_change_a_result_makes_another_run(flag: str, runs: Freeze) -> None:
    assert runs("flag", flag).path != runs("flag").path


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("+trainer.max_steps=9", r"trainer\.max_steps is set by étude itself: say budget\.max_steps instead"),
        ("trainer.max_epochs=9", r"trainer\.max_epochs is set by étude itself: say budget\.max_steps instead"),
        ("+trainer.val_check_interval=9", r"say budget\.val_every instead"),
        ("+trainer.logger=false", r"trainer\.logger is set by étude itself: say logger instead"),
        ("+trainer.callbacks=[]", r"say callbacks instead"),
        ("+trainer.plugins=[]", r"trainer\.plugins is set by étude itself: leave it out"),
        (
            "+trainer.gradient_clip_vla=1",
            r"gradient_clip_vla is not a key of trainer; did you mean gradient_clip_val",
        ),
        (
            "trainer.gradient_clip=1",
            r"trainer\.gradient_clip is not a key of trainer; did you mean gradient_clip_val",
        ),
        ("trainer.benchmark=true", r"trainer\.benchmark is not in the config yet: write \+trainer\.benchmark=\.\.\."),
        ("trainer.gradient_clip_val=much", r"trainer\.gradient_clip_val must be a number or null, not 'much'"),
        ("+trainer.profiler._target_=nowhere.Profiler", r"nowhere\.Profiler cannot be found"),
        ("+trainer.profiler.filename=perf", r"trainer\.profiler names no _target_"),
        ("+trainer.num_nodes=two", r"trainer\.num_nodes must be a whole number or null, not 'two'"),
    ],
)
def test_a_flag_that_cannot_be_set_is_refused_by_name_with_what_to_say(typed: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=told):
        freeze(compose([f"runs_dir={tmp_path}", typed]))
    assert not [*tmp_path.iterdir()]


def test_what_lightning_refuses_is_one_sentence(runs: Freeze) -> None:
    with pytest.raises(UserError, match=r"does not fit this machine: .*gradient_clip_algorithm"):
        train(runs("algorithm", "+trainer.gradient_clip_algorithm=shorten"))


@pytest.mark.filterwarnings("ignore:You passed `Trainer")
def test_a_precision_that_is_for_gpus_is_not_replaced_by_another(runs: Freeze) -> None:
    with pytest.raises(UserError, match="precision=16-mixed needs a GPU: here, say precision=bf16-mixed"):
        train(runs("halves", "precision=16-mixed", "trainer=cpu"))


@pytest.mark.skipif(torch.cuda.is_available() or torch.backends.mps.is_available(), reason="here is a GPU")
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("trainer=gpu", "trainer.accelerator=gpu: PyTorch finds no GPU here; trainer=cpu needs none"),
        ("precision=16-mixed", "precision=16-mixed needs a GPU"),
    ],
)
def test_what_this_machine_cannot_train_is_refused_before_a_text_is_prepared(
    typed: str,
    told: str,
    runs: Freeze,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = runs("no_gpu", typed)
    monkeypatch.setattr(sys, "argv", ["run", str(run.path)])
    monkeypatch.setattr(etude.training.run, "train", lambda *_: pytest.fail("it went on"))
    with pytest.raises(SystemExit) as stop:
        etude.training.run.main()
    assert (stop.value.code, told in capsys.readouterr().err) == (2, True)
    with pytest.raises(SystemExit) as stop:
        main(["train", typed, "budget=smoke", f"runs_dir={tmp_path / 'typed'}"])
    assert (stop.value.code, told in capsys.readouterr().err) == (2, True)
    assert not [*tmp_path.glob("typed/*/*/*")]


def test_a_fast_dev_run_goes_through_everything_once_and_again_and_is_no_result_of_its_study(runs: Freeze) -> None:
    typed = ["trainer.fast_dev_run=2", "study=table3", "callbacks=[ema,best_checkpoint]", "logger=csv"]
    run = runs("dev", *typed)
    assert run.path.parts[-3:-1] == ("debug", "base")
    result = train(run)
    assert (result["steps"], result["test"]["sentences"]) == (2, 2)
    assert not (run.path / "csv").exists()
    assert [row["step"] for row in read_metrics(run.metrics_file) if row["valid_loss"]] == ["2"]
    with FileLock(run.lock_file), pytest.raises(Busy):
        runs("dev", *typed)
    assert run.finished, "nobody takes it away from the process that trains it"
    again = runs("dev", *typed)
    assert again.path == run.path
    assert not again.finished


def test_training_on_the_first_batches_again_and_again_goes_on_where_it_stopped(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, tuple[int, ...]]] = []
    step = "etude.training.module.TrainingModule.on_train_batch_start"

    def look(self: object, batch: object, batch_idx: int) -> None:
        seen.append((self.global_step, tuple(batch.rows)))  # type: ignore[attr-defined]
        if stop and self.global_step == 4:  # type: ignore[attr-defined]
            raise RuntimeError

    monkeypatch.setattr(step, look)
    small = [
        "budget.source_tokens=40",
        "budget.target_tokens=40",
        "budget.max_steps=8",
        "trainer.limit_train_batches=3",
    ]
    run, stop = runs("limited", *small), True
    with pytest.raises(RuntimeError):
        train(run)
    stop = False
    train(run)
    batches = dict(seen)
    assert [batches[k] for k in range(8)] == [batches[k % 3] for k in range(8)]
    assert len({batches[k] for k in range(3)}) == 3


def test_two_machines_train_one_run_where_somebody_starts_a_process_on_each(runs: Freeze) -> None:
    alone, shared = (
        with_plain_descent(runs("one", *ONE)),
        with_plain_descent(runs("nodes", *ONE, "+trainer.num_nodes=2")),
    )
    train(alone)
    refused = in_processes(shared)
    assert refused.returncode == 2
    assert "trainer.num_nodes=2 needs processes on each of them: on each, say `torchrun --nnodes 2" in refused.stderr
    done = warm.run(warm.TRAINING, shared.path, ranks=cluster(machines=2))
    assert done.returncode == 0, done.stderr
    assert distance(update(alone), update(shared)) < 1e-4
    assert read_checkpoint(shared.checkpoint)["global_step"] == 1
