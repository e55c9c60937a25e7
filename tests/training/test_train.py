"""What a run refuses before it trains, and what it does not do twice."""

import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from filelock import FileLock

from etude.config import parts
from etude.config.explain import explain
from etude.errors import UserError
from etude.files import write_text
from etude.paths import shipped
from etude.store.lock import Busy
from etude.store.log import last_error
from etude.store.metrics_file import read_metrics
from etude.tasks import build
from etude.training import run as training
from etude.training.run import main, train
from etude.training.schedule import Noam, learning_rate

from .conftest import Freeze


def test_a_run_whose_text_was_edited_since_its_launch_is_not_trained_on_the_new_one(runs: Freeze) -> None:
    run = runs("edited")
    write_text(run.text_file, "0123456789abcdef\n")
    with pytest.raises(UserError, match=r"the text has changed since \S+ was launched: .*launch it again"):
        train(run)
    assert not run.checkpoint.exists()


def test_a_run_that_is_stopped_while_its_loggers_take_the_result_gives_it_to_them_again(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only afterwards is it finished, so that no sweep and no second start passes it by."""
    run, recorded = runs("told"), []

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "record", stop)
    with pytest.raises(KeyboardInterrupt):
        train(run)
    assert not run.finished
    monkeypatch.setattr(training, "record", lambda loggers, run, result, checkpoints: recorded.append(result))
    result = train(run)
    assert recorded == [result]
    assert run.result() == result


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_line_that_no_batch_can_hold_is_told_before_training(split: str, runs: Freeze, tmp_path: Path) -> None:
    long = " ".join(["a"] * 60)
    (tmp_path / "held-out.tsv").write_text(f"a b\ta b\n{long}\ta\n")
    run = runs(f"long-{split}", f"data.{split}.tsv={tmp_path / 'held-out.tsv'}", "budget.source_tokens=40")
    with pytest.raises(UserError) as refused:
        train(run)
    assert not run.metrics_file.exists()
    told = rf"/{split}\.source\.txt, line 2, has \d+ tokens, more than budget\.source_tokens=40 can hold"
    assert refused.match(told)


@pytest.mark.parametrize(
    ("section", "key"),
    [("schedule", "max_steps"), ("trainer", "micro_batches"), ("averaging", "every"), ("budget", "bleu_sentences")],
)
def test_a_run_that_was_frozen_by_other_code_is_told_which_key_it_lacks(section: str, key: str, runs: Freeze) -> None:
    run = runs(f"frozen-{section}")
    config = run.config()
    del config[section][key]
    write_text(run.config_file, yaml.safe_dump(config))
    with pytest.raises(
        UserError, match=rf"was written by another version of the code \(.*{key} is missing: .*\): launch it again"
    ):
        train(run)
    assert not run.metrics_file.exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda config: config["model"]["norm"].pop("eps"), r"model.norm.eps is missing"),
        (lambda config: config["model"]["norm"].update(colour=1), r"model.norm.colour is not a key of model.norm"),
        (
            lambda config: config["model"]["init"].update(_target_="etude.model.init.Gone"),
            r"names nothing in etude.model",
        ),
        (lambda config: config["data"].pop("holdout"), r"data.text_files.FilesCorpus.holdout is missing"),
        (lambda config: config["tokenizer"].pop("character_coverage"), r"SentencePiece.character_coverage is missing"),
    ],
)
def test_a_finished_run_that_todays_code_cannot_make_again_is_told_in_one_sentence(
    change: Callable[[dict[str, Any]], Any], told: str, runs: Freeze
) -> None:
    config = runs("finished").config()
    change(config)
    with pytest.raises(UserError, match=rf"was written by another version of the code \(.*{told}.*\): launch it again"):
        build.model(config, 30), build.token_store(config)


def test_what_another_process_has_finished_meanwhile_is_taken_and_not_computed_again(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, real = runs("awaited"), training.hold

    def finished_meanwhile(*arguments: Any) -> AbstractContextManager[None]:
        run.write_result({"by": "the other one"})
        return real(*arguments)

    monkeypatch.setattr(training, "hold", finished_meanwhile)
    assert train(run) == {"by": "the other one"}


def values(group: str) -> list[str]:
    return sorted(file.stem for file in (shipped("conf") / group).glob("*.yaml"))


ONE_CYCLE = [  # a scheduler of torch's, which a file of the user's would hold
    "schedule=constant",
    *("~schedule.peak", "~schedule.warmup_steps", "+schedule._partial_=true"),
    "schedule._target_=torch.optim.lr_scheduler.OneCycleLR",
    *("+schedule.max_lr=0.01", "+schedule.total_steps=4", "optimizer=adamw", "optimizer.lr=0.01"),
]


@pytest.mark.parametrize(
    "chosen",
    [
        *([f"optimizer={name}"] for name in values("optimizer")),
        *([f"schedule={name}"] for name in values("schedule") if name != "noam"),  # which those above have
        ONE_CYCLE,
    ],
    ids=lambda chosen: chosen[0] if len(chosen) == 1 else "torch",
)
def test_every_optimizer_and_schedule_trains_at_the_rate_that_is_planned(runs: Freeze, chosen: list[str]) -> None:
    run = runs(
        "-".join(["rates", *chosen[0].split("="), str(len(chosen))]),
        *chosen,
        "budget.max_steps=4",
        "budget.warmup_steps=2",
    )
    result = train(run)
    assert result["steps"] == 4
    assert "diverged" not in result
    rate = learning_rate(run.config())
    logged = [float(row["learning_rate"]) for row in read_metrics(run.metrics_file) if row["learning_rate"]]
    assert logged == pytest.approx([rate(step) for step in range(1, 5)])


class Falling(Noam):
    """A straight line that is below zero at step 3."""

    def __call__(self, step: int) -> float:
        return 0.2 - 0.1 * step


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (
            [override for override in ONE_CYCLE if "max_lr" not in override],
            r"OneCycleLR cannot be called .*missing a required argument: 'max_lr'",
        ),
        (["schedule=wsd", "schedule.cooldown=2"], r"schedule\.cooldown must lie in \[0, 1\], not 2"),
        ([f"schedule._target_={__name__}.Falling"], r"the learning rate of step 3 is -0\.1, and none may be below 0"),
    ],
    ids=["torch", "ours", "uphill"],
)
def test_what_a_schedule_lacks_or_refuses_is_one_sentence_before_any_text_is_prepared(
    chosen: list[str], told: str, runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "token_store", lambda config: pytest.fail("the text was prepared"))
    with pytest.raises(UserError, match=told):
        train(runs("lacking", *chosen))


def test_a_scheduler_of_torchs_that_goes_below_zero_ends_the_run_there(runs: Freeze) -> None:
    falling = [one.replace("OneCycleLR", "StepLR") for one in ONE_CYCLE if "max_lr" not in one and "total" not in one]
    values = ["+schedule.step_size=2", "+schedule.gamma=-1.0"]
    with pytest.raises(UserError, match=r"the learning rate of step 3 is -0\.01, and none may be below 0"):
        train(runs("falling", *falling, *values))


def test_a_scheduler_of_torchs_needs_an_optimizer_that_has_a_rate(runs: Freeze) -> None:
    """With the default, whose rate is one, training would begin there."""
    rateless = [override for override in ONE_CYCLE if "optimizer" not in override]
    with pytest.raises(UserError, match=r"OneCycleLR changes the optimizer's .*say it, such as optimizer=adamw"):
        runs("rateless", *rateless)


@pytest.mark.parametrize("tokenizer", sorted({*values("tokenizer")} - {"bpe", "byte", "existing"}))
def test_every_other_tokenizer_trains(runs: Freeze, tokenizer: str) -> None:
    size = ["tokenizer.vocab_size=30", "tokenizer.hard_vocab_limit=false"]
    run = runs(tokenizer, f"tokenizer={tokenizer}", *size, "budget.max_steps=2", "budget.val_every=2")
    assert train(run)["vocabulary"] <= 30
    assert run.tokenizer_file.stat().st_size > 0


def test_a_run_that_another_process_trains_ends_with_a_status_of_its_own(runs: Freeze) -> None:
    run = runs("held")
    with FileLock(run.lock_file), pytest.raises(Busy, match=r"another process is training \S+: wait for it") as busy:
        train(run)
    assert busy.value.exit_status == 75
    assert not run.log_file.exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine where no GPU answers")
def test_a_run_that_was_given_a_gpu_which_does_not_answer_is_not_trained_on_the_processor(
    runs: Freeze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(UserError, match=r"CUDA_VISIBLE_DEVICES=7, but PyTorch .* finds no GPU there: .*trainer=cpu"):
        train(runs("blind", "trainer=auto"))
    train(runs("seeing", "trainer=cpu", "budget.max_steps=1", "budget.val_every=1"))


def halved(parameters: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
    """Plain descent at half the rate that the schedule gives."""
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    optimizer.param_groups[0]["lr"] = 0.5
    return optimizer


def test_the_rate_that_is_logged_is_the_rate_that_was_used(runs: Freeze) -> None:
    run = runs("halved", "budget.max_steps=4")
    config = run.config() | {"optimizer": {"_target_": f"{__name__}.halved", "_partial_": True}}
    run.config_file.write_text(yaml.safe_dump(config))
    train(run)
    rates = [float(row["learning_rate"]) for row in read_metrics(run.metrics_file) if row["learning_rate"]]
    schedule = parts.make(config["schedule"])
    assert rates == [0.5 * schedule(step) for step in range(1, 5)]


def test_a_class_that_a_sweeps_run_cannot_import_is_one_sentence_in_its_log(
    runs: Freeze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "needs_what_is_not.py").write_text(
        "import nobody_has_this\nclass Scale:\n    def __init__(self, *, d_k): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = runs("torn")
    text = run.config_file.read_text()
    run.config_file.write_text(text.replace("etude.model.scale.SqrtDk", "needs_what_is_not.Scale"))
    monkeypatch.setattr(sys, "argv", ["etude.training.run", str(run.path)])
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "needs_what_is_not.py, line 1: No module named 'nobody_has_this'" in told
    assert "Traceback" not in told


OWN = "from etude.model.feedforward import ReluFeedForward\nclass Own(ReluFeedForward):\n"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "    def forward(self, x):\n        raise KeyError('x')",
            r"etude: model: EncoderDecoder fails in (own\d)\.Own \(.*\1\.py, line 4\) when .*: KeyError: 'x'",
        ),
        (
            "    def forward(self, x): ...",
            r"etude: model: EncoderDecoder fails with (own\d)\.Own \(.*\1\.py\) when .*: AttributeError: 'NoneType' .*",
        ),
        (
            "    def __init__(self, **sizes):\n        super().__init__(sizes)",
            r"etude: this model cannot be built: .* in (own\d)\.Own \(.*\1\.py, line 4\)",
        ),
        (
            "    def __init__(self, **sizes):\n        super().__init__(**sizes | {}['width'])",
            r"etude: this model cannot be built: KeyError: 'width' in (own\d)\.Own \(.*\1\.py, line 4\)",
        ),
    ],
)
def test_the_last_line_of_a_run_that_fails_in_a_users_own_part_names_it_and_its_file(
    body: str, sentence: str, runs: Freeze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"own{len(body) % 10}"
    (tmp_path / f"{name}.py").write_text(OWN + body)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the part raises
        train(runs(name, f"model.feedforward._target_={name}.Own"))
    mistake = explain(caught.value)
    told = f"etude: {mistake}" if mistake else "".join(traceback.format_exception(caught.value))
    (tmp_path / "log.txt").write_text(told)
    assert re.fullmatch(sentence, last_error(tmp_path / "log.txt") or "")


def test_weights_that_a_part_which_was_edited_cannot_take_are_told(runs: Freeze) -> None:
    run = runs("edited")
    train(run)
    run.result_file.unlink()
    config = run.config()
    config["model"]["feedforward"]["d_ff"] += 1
    run.config_file.write_text(yaml.safe_dump(config))
    with pytest.raises(UserError, match=r"do not fit its model as it is now built \(size mismatch for .*stale=rerun"):
        train(run)
