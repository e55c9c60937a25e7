"""Callbacks: Lightning's, étude's and the user's, each of which takes part in resuming and in what a run ends with."""

from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from tests import warm

from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.errors import UserError
from etude.paths import shipped
from etude.store.metrics_file import read_metrics
from etude.store.run_dir import RunDir
from etude.tasks.perplexity import perplexity
from etude.trained.checkpoint import model_weights, read_checkpoint
from etude.trained.load import load_trained
from etude.trained.weights import final_weights
from etude.training.run import train

from .conftest import Freeze, distance, found, in_processes, same, update, with_plain_descent

SETTING = ["model.dropout=0.3", "budget.max_steps=12", "budget.val_every=3"]
STOPPING = ["callbacks=early_stopping", "callbacks.early_stopping.patience=1", "callbacks.early_stopping.min_delta=100"]
EMA = ["callbacks=ema", "callbacks.ema.decay=0.5"]
BEST = ["callbacks=best_checkpoint", "callbacks.best_checkpoint.mode=max"]  # of a falling loss the first is the best
numbers = count()
DYING = Path(__file__).with_name("dying.py")


def mine(name: str, **values: Any) -> list[str]:
    return [f"+callbacks.mine._target_={__name__}.{name}", *(f"+callbacks.mine.{k}={v}" for k, v in values.items())]


def killed(run: RunDir, moment: str) -> None:
    """Train until a process is killed, or asked to stop, at a moment of `dying.py`."""
    done = warm.run(str(DYING), moment, run.path)
    assert done.returncode in (-9, 130), done.stderr
    assert not run.finished


def weights(run: RunDir, name: str = "last.ckpt") -> dict[str, torch.Tensor]:
    return model_weights(read_checkpoint(run.checkpoint.with_name(name)))


class Follower(Callback):
    """The moving average as the textbook has it, and the weights that it is the average of."""

    def __init__(self, *, decay: float) -> None:
        self.decay = decay
        self.average: dict[str, torch.Tensor] = {}
        self.last: dict[str, torch.Tensor] = {}

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *rest: Any) -> None:
        self.last = {name: value.detach().clone() for name, value in pl_module.model.named_parameters()}
        average = self.average or self.last
        self.average = {
            name: average[name] + (1 - self.decay) * (self.last[name] - average[name]) for name in self.last
        }
        followers.append(self)


followers: list[Follower] = []


@pytest.fixture(scope="module")
def plain(runs: Freeze) -> RunDir:
    """A finished run without callbacks."""
    run = runs("plain", *SETTING)
    train(run)
    return run


@pytest.fixture(scope="module")
def first(runs: Freeze) -> RunDir:
    """The same, finished at its first validation."""
    run = runs("first", *SETTING, "budget.max_steps=3")
    train(run)
    return run


def test_a_run_with_ema_is_validated_and_ends_with_the_moving_average_of_its_weights(
    runs: Freeze, plain: RunDir
) -> None:
    run = runs("ema", *SETTING, *EMA, *mine("Follower", decay=0.5))
    train(run)
    [average, last] = followers[-1].average, followers[-1].last
    ended = final_weights(run, run.config())
    for name, value in average.items():
        torch.testing.assert_close(ended[name], value)
    assert same(last, {name: weights(plain)[name] for name in last})  # it takes no part in training itself
    valid, plainly = (
        [float(r["valid_loss"]) for r in read_metrics(x.metrics_file) if r["valid_loss"]] for x in (run, plain)
    )
    assert valid != plainly
    assert run.result()["valid"]["perplexity"] == pytest.approx(perplexity(valid[-1], 1))
    _, transformer, _ = load_trained(run)
    assert same(dict(transformer.state_dict()), ended)


def test_a_table_of_positions_that_grows_in_mid_training_is_no_weight_and_not_averaged(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etude.model.position.base._INITIAL_LENGTH", 1)
    assert train(runs("growing", *SETTING, *EMA))["steps"] == 12


class Tables(Callback):
    """Watches the model's buffers, which are tables of positions, and the optimizer."""

    def __init__(self) -> None:
        self.kept: dict[str, torch.Tensor] = {}
        watchers.append(self)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.before = {name: value.clone() for name, value in pl_module.named_buffers()}

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.after = dict(pl_module.named_buffers())
        self.unscales = [getattr(one, "_step_supports_amp_scaling", False) for one in trainer.optimizers]


watchers: list[Tables] = []


@pytest.mark.parametrize("position", ["t5", "sinusoidal"])
def test_an_average_leaves_tables_of_positions_as_they_are(position: str, runs: Freeze) -> None:
    """Shared with the average, they were averaged with themselves: 0.9 x + 0.1 x is not x, and as an integer less."""
    few = ["model.position.buckets=16"] if position == "t5" else []
    train(
        runs(
            f"tables-{position}",
            *SETTING,
            *EMA[:1],
            "callbacks.ema.decay=0.9",
            *mine("Tables"),
            f"model/position={position}",
            *few,
        )
    )
    tables = watchers[-1]
    assert tables.before
    assert same(tables.before, tables.after)


def test_a_fused_optimizer_leaves_it_to_lightning_to_unscale_gradients(runs: Freeze) -> None:
    """So that a callback that looks at them before an update does not see the scale of half precision."""
    train(runs("unscaled", *SETTING, *mine("Tables")))
    assert watchers[-1].unscales == [False]


def test_a_run_that_is_stopped_early_is_finished_at_the_step_where_that_was(runs: Freeze, plain: RunDir) -> None:
    """The second validation is the first that improves too little on the one before it."""
    run = runs("early", *SETTING, *STOPPING)
    result = train(run)
    assert (result["steps"], result["finished"], run.finished) == (6, True, True)
    assert [row["step"] for row in read_metrics(run.metrics_file) if row["valid_loss"]] == ["3", "6"]
    assert read_checkpoint(run.checkpoint)["global_step"] == 6
    assert result["flops"] == pytest.approx(plain.result()["flops"] / 2)


def test_a_run_ends_with_the_weights_of_its_best_validation(runs: Freeze, first: RunDir) -> None:
    run = runs("best", *SETTING, *BEST)
    result = train(run)
    losses = [float(row["valid_loss"]) for row in read_metrics(run.metrics_file) if row["valid_loss"]]
    assert losses[0] == max(losses)
    assert same(final_weights(run, run.config()), weights(first))
    assert not same(weights(run), weights(first))
    assert result["valid"] == first.result()["valid"]
    assert result["steps"] == 12
    assert sorted(file.name for file in run.checkpoint.parent.iterdir()) == ["best.ckpt", "last.ckpt"]


KEEPING = [
    f"+callbacks.kept.{key}={value}"
    for key, value in {
        "_target_": "lightning.pytorch.callbacks.ModelCheckpoint",
        "monitor": "val_perplexity",
        "mode": "max",
    }.items()
]  # of a falling perplexity the first is the best


@pytest.mark.parametrize("more", [[], ["+callbacks.kept.save_top_k=2"], ["+callbacks.kept.filename=mine"]])
def test_a_model_checkpoint_of_any_name_that_watches_a_metric_keeps_the_weights_that_are_tested(
    more: list[str], runs: Freeze, first: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    run = runs(f"any{len(more[0]) if more else 0}", *SETTING, *KEEPING, *more)
    with caplog.at_level("INFO"):
        result = train(run)
    assert "tested are the best weights, kept by callbacks.kept; weights=last tests the last weights" in caplog.messages
    assert same(final_weights(run, run.config()), weights(first))
    assert (result["steps"], result["valid"], result["test"]) == (12, first.result()["valid"], first.result()["test"])


@pytest.mark.parametrize("callbacks", [KEEPING, BEST], ids=["any name", "best_checkpoint"])
def test_the_last_weights_are_tested_where_they_are_asked_for_and_trained_once(
    callbacks: list[str], runs: Freeze, plain: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"asked{len(callbacks)}"
    best, last = (runs(name, *SETTING, *callbacks, *typed) for typed in ([], ["weights=last"]))
    train(best)
    with caplog.at_level("INFO"):
        result = train(last)
    assert any(message.endswith("is trained already") for message in caplog.messages)
    assert (result["valid"], result["test"]) == (plain.result()["valid"], plain.result()["test"])
    assert best.result()["valid"] != result["valid"]
    assert same(final_weights(best, best.config()), final_weights(last, last.config() | {"weights": "best"}))


def test_a_run_that_was_frozen_before_weights_could_be_chosen_tests_what_it_tested_then(
    runs: Freeze, plain: RunDir
) -> None:
    run = runs("before", *SETTING, *KEEPING)
    config = run.config()
    del config["weights"]
    run.config_file.write_text(yaml.safe_dump(config, sort_keys=False))
    assert train(run)["test"] == plain.result()["test"]


MOMENTS = [
    "in the middle of an epoch",
    "SIGTERM in a validation",
    "in the middle of a checkpoint",
    "SIGTERM in the step before a validation",
    "SIGTERM in a step",
    "while the weights are judged",
]
BOTH = [*EMA, *STOPPING[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("callbacks", "moment"),
    [
        *product([KEEPING, BOTH], MOMENTS),
        *product([KEEPING[:2], BEST], ["in the middle of a checkpoint"]),
    ],
)
def test_a_run_with_callbacks_that_is_killed_and_goes_on_ends_bit_for_bit_the_same(
    callbacks: list[str], moment: str, runs: Freeze
) -> None:
    if callbacks == BOTH:
        callbacks = ["callbacks=[ema,early_stopping]", *callbacks[1:]]
    torch.set_num_threads(1)
    names = "".join(filter(str.isalpha, "".join(callbacks))), f"run{next(numbers)}"
    peaceful, run = (runs(name, *SETTING, *callbacks) for name in names)
    train(peaceful)  # once for all moments
    killed(run, moment)
    train(run)
    assert found(run) == found(peaceful)
    assert same(final_weights(run, run.config()), final_weights(peaceful, run.config()))
    states = [read_checkpoint(each.checkpoint) for each in (run, peaceful)]
    hidden = [state.get("current_model_state", {}) for state in states]
    assert same(hidden[0], hidden[1])


@pytest.mark.slow
@pytest.mark.parametrize("callbacks", [[], EMA], ids=["plain", "ema"])
def test_a_run_in_double_precision_that_is_killed_goes_on_with_doubles(callbacks: list[str], runs: Freeze) -> None:
    torch.set_num_threads(1)
    name, setting = "-".join(["double", *callbacks[:1]]).replace("=", "-"), [*SETTING, "precision=64-true", *callbacks]
    peaceful, run = runs(f"peaceful-{name}", *setting), runs(name, *setting)
    train(peaceful)
    killed(run, "in the middle of an epoch")
    train(run)
    assert found(run) == found(peaceful)
    assert {weight.dtype for weight in weights(run).values()} == {torch.float64}
    assert {weight.dtype for weight in load_trained(run)[1].parameters()} == {torch.float64}
    assert any(bool((weight != weight.float().double()).any()) for weight in weights(run).values())


def test_a_directory_that_was_moved_in_mid_run_still_knows_its_best_validation(runs: Freeze, tmp_path: Path) -> None:
    peaceful, run = runs("unmoved", *SETTING, *BEST), runs("moved", *SETTING, *BEST)
    train(peaceful)
    killed(run, "in the middle of an epoch")
    elsewhere = RunDir(tmp_path / run.path.name)
    run.path.rename(elsewhere.path)
    train(elsewhere)
    assert found(elsewhere) == found(peaceful)
    assert same(weights(elsewhere, "best.ckpt"), weights(peaceful, "best.ckpt"))


class Raises(Callback):
    """A callback with a mistake in it."""

    def __init__(self, *, at: int) -> None:
        self.at = at

    def on_train_batch_end(self, trainer: Trainer, *rest: Any) -> None:
        if trainer.global_step == self.at:
            raise RuntimeError("the callback's own mistake")


def test_a_callback_that_raises_fails_its_run_and_is_named_in_its_last_line(runs: Freeze) -> None:
    run = runs("raises", *SETTING, *mine("Raises", at=5))
    done = in_processes(run)
    assert done.returncode == 1
    *_, error, last = done.stderr.splitlines()
    assert error == "RuntimeError: the callback's own mistake"
    assert last.startswith(f"etude: RuntimeError in {__name__}.Raises ({__file__}, line ")
    assert last.endswith("): the callback's own mistake")
    assert not run.finished


CALLBACKS = sorted({file.stem for file in (shipped("conf") / "callbacks").glob("*.yaml")} - {"none"})
NORMS = ["callbacks=gradient_norms", "callbacks.gradient_norms.every=4", "logger=csv"]


@pytest.mark.slow
@pytest.mark.parametrize("callback", CALLBACKS)
def test_two_processes_with_a_callback_end_as_one_does(runs: Freeze, callback: str) -> None:
    setting = ["model.dropout=0", "budget.max_steps=12", "budget.val_every=3", f"callbacks={callback}"]
    acting = {"ema": EMA, "early_stopping": STOPPING, "best_checkpoint": BEST, "gradient_norms": NORMS}
    setting += acting.get(callback, [])
    one, two = (runs(f"{callback}-{n}", *setting, f"trainer.devices={n}") for n in (1, 2))
    for run in (one, two):
        with_plain_descent(run)
    train(one)
    done = in_processes(two)
    assert two.finished, done.stderr
    assert two.result()["steps"] == one.result()["steps"]
    assert distance(update(one), update(two)) < 1e-5


class Odd:
    """No callback."""


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["+callbacks.mine._target_=nowhere.Callback"], r"_target_: nowhere\.Callback cannot be found"),
        (mine("Misnamed"), r"test_callbacks\.Misnamed names nothing"),
        (mine("Raises"), r"callbacks\.mine\.at is missing: \S+Raises needs it"),
        (
            mine("Raises", att=5),
            r"callbacks\.mine\.att is not a key of callbacks\.mine, for .*\.Raises does not take it; did you mean at\?",
        ),
        (["callbacks.ema.decay=0.9"], r"callbacks\.ema has not been chosen: write callbacks=ema first"),
        (["callbacks=[ema,best]"], r"there is no 'best' in the group callbacks; choose one of best_checkpoint, early"),
        (["callbacks=early_stopping", "callbacks.early_stopping.monitor=valid_loss"], r"logged; did you mean val_loss"),
        (["callbacks=best_checkpoint", "budget.val_every=500"], r"no validation in .*say budget\.val_every=10"),
        (["callbacks._target_=x"], r"callbacks\._target_ has not been chosen|put _target_"),
        (
            [*EMA, "averaging.checkpoints=2", "averaging.every=1"],
            r"averaging\.checkpoints and callbacks\.ema both decide",
        ),
        ([*BEST, "averaging.checkpoints=2", "averaging.every=1"], r"averaging\.checkpoints and callbacks\.best_ch"),
    ],
)
def test_a_callback_that_cannot_be_is_one_sentence_before_anything_is_written(
    typed: list[str], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=told):
        freeze(compose(["budget=smoke", f"runs_dir={tmp_path}/runs", *typed]))
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (mine("Odd"), r"callbacks\.mine: \S+\.Odd makes no Callback of Lightning's"),
        (["callbacks=ema", "callbacks.ema.decay=2"], r"callbacks\.ema\.decay must lie in \[0, 1\), not 2"),
        (["callbacks=best_checkpoint", "callbacks.best_checkpoint.mode=least"], r"callbacks\.best_checkpoint: .*least"),
    ],
)
def test_what_a_callback_refuses_is_one_sentence_before_training(typed: list[str], told: str, runs: Freeze) -> None:
    run = runs(f"refused{next(numbers)}", *typed)
    with pytest.raises(UserError, match=told):
        train(run)
    assert not run.metrics_file.exists()


def test_what_lightning_finds_missing_when_training_begins_is_one_sentence(runs: Freeze) -> None:
    monitor = "+callbacks.rates._target_=lightning.pytorch.callbacks.LearningRateMonitor"
    with pytest.raises(UserError, match=r"Lightning does not train this: .*LearningRateMonitor.* no logger"):
        train(runs("monitor", monitor))


@pytest.mark.parametrize(("typed", "same_run"), [(["callbacks=gradient_norms"], True), (EMA, False)])
def test_a_callback_makes_another_run_unless_it_is_known_only_to_look(
    typed: list[str], same_run: bool, runs: Freeze
) -> None:
    assert (runs("material", *SETTING, *typed).path == runs("material", *SETTING).path) == same_run


def test_what_a_callback_logs_goes_to_the_loggers_and_changes_no_result(runs: Freeze, plain: RunDir) -> None:
    run = runs("watched", *SETTING, *NORMS)
    train(run)
    assert found(run) == found(plain)
    rows = read_metrics(run.path / "csv" / "version_0" / "metrics.csv")
    assert [row["step"] for row in rows if row["grad_2.0_norm_total"]] == ["4", "8", "12"]
    assert CSVLogger.__name__ in run.config()["logger"]["csv"]["_target_"]


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_what_lightnings_callbacks_log_has_the_steps_of_a_run_that_was_never_stopped(
    micro_batches: int, runs: Freeze
) -> None:
    monitor = ["+callbacks.rates._target_=lightning.pytorch.callbacks.LearningRateMonitor", "logger=csv"]
    monitor += ["+trainer.log_every_n_steps=1", f"trainer.micro_batches={micro_batches}"]
    peaceful, run = (runs(f"{name}-{micro_batches}", *SETTING, *monitor) for name in ("rates", "stopped-rates"))
    train(peaceful)
    killed(run, "SIGTERM in a step")
    killed(run, "SIGHUP in a step")
    train(run)
    shown = [
        [(row["step"], row["lr-Adam"]) for file in files for row in read_metrics(file) if row.get("lr-Adam")]
        for files in (sorted(each.path.glob("csv/version_*/metrics.csv")) for each in (peaceful, run))
    ]
    assert shown[0] == shown[1]
    assert [step for step, _ in shown[0]] == [str(step) for step in range(12) for _ in range(micro_batches)]
