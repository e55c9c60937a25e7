"""Loggers on this machine alone. What arrives at a server is claimed in `tests/wandb`."""

import logging
import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.loggers import CSVLogger, Logger

from etude.config.compose import compose
from etude.config.resolve import resolve, resolve_valid
from etude.errors import UserError
from etude.files import write_json
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, read_stop
from etude.store.wandb_id import logged_as
from etude.training.build import make_parts
from etude.training.loggers import finish, record, wandb
from etude.training.metrics_writers import LoggerSink, MetricsFile
from wandb import teardown

CONFIG = {"study": "table3", "arm": "A1", "seed": 2, "budget": {"max_steps": 20}, "choices": {}}
RESULT = {"steps": 20, "parameters": 7, "valid": {"perplexity": 5.5}, "test": {"bleu": 31.5, "signature": "nrefs:1"}}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDir]:
    """A run with its sentences, and W&B as it is where nobody has set it up."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    directory = RunDir(tmp_path / "runs" / "table3" / "A1" / "seed2-0123456789")
    directory.path.mkdir(parents=True)
    write_json(directory.config_file, CONFIG)
    for file in (directory.sources_file, directory.references_file, directory.hypotheses_file):
        file.write_text("ein Hund\n")
    yield directory
    with suppress(ConnectionError):  # where its process has been killed
        teardown()


def offline(run: RunDir) -> list[Logger]:
    return wandb(run, run.config(), mode="offline", project="etude", entity=None)


def test_a_run_that_the_server_stops_is_pruned_if_an_agent_of_a_search_there_asked_for_it(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    loggers = offline(run)
    stop = loggers[0].experiment.settings.stop_fn  # type: ignore[attr-defined]
    with monkeypatch.context() as environment:
        environment.setenv("WANDB_SWEEP_ID", "s1")
        stop()
    assert read_stop(run) == Stop(0, State.PRUNED)
    stop()
    assert read_stop(run) == Stop(0, State.PAUSED)
    finish(loggers, exit_code=0)


def test_no_logger_is_a_choice(run: RunDir) -> None:
    assert compose(["logger=none"]).logger == {}
    record([], run, RESULT)
    finish([], exit_code=0)


def test_whoever_has_switched_wandb_off_gets_no_logger_and_is_told(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert wandb(run, CONFIG, mode="online", project="etude", entity=None) == []
    assert "WANDB_MODE=disabled switches W&B off" in caplog.text


def test_where_the_environment_says_offline_it_is_told_how_to_send_the_run(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    finish(wandb(run, CONFIG, mode="online", project="etude", entity=None), exit_code=0)
    assert f"(WANDB_MODE=offline); logging offline, `wandb sync {run.path}/wandb` sends it later" in caplog.text


@pytest.mark.slow
def test_an_unreachable_server_sends_the_run_offline(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    finish(wandb(run, CONFIG, mode="online", project="etude", entity=None), exit_code=0)
    assert f"logging offline, `wandb sync {run.path}/wandb` sends it later" in caplog.text
    assert [*run.path.glob("wandb/offline-run-*")]


def test_a_setting_that_wandb_refuses_is_named_and_nothing_is_promised(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WANDB_BASE_URL", "127.0.0.1:9")  # without http://
    assert wandb(run, CONFIG, mode="online", project="etude", entity=None) == []
    assert "W&B cannot be started (base_url: " in caplog.text
    assert "sends it later" not in caplog.text


def test_what_the_environment_tells_wandb_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MODE": "disabled", "PROJECT": "mine", "ENTITY": "team"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    told = resolve(compose(["logger=wandb"]))["logger"]["wandb"]
    assert (told["mode"], told["project"], told["entity"]) == ("disabled", "mine", "team")
    assert resolve(compose(["logger=wandb", "logger.wandb.project=typed"]))["logger"]["wandb"]["project"] == "typed"


def log_steps(run: RunDir, steps: Iterable[int], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Log a row for each step, as a process does that goes on before the first; (step, number) of what W&B gets."""
    logged: list[tuple[int, int]] = []
    (logger,) = offline(run)
    monkeypatch.setattr(logger.experiment, "log", lambda row, **at: logged.append((row["step"], at["step"])))
    first, *rest = steps
    sinks = [MetricsFile(run.metrics_file, first - 1), LoggerSink(logger)]
    for step in (first, *rest):
        for sink in sinks:
            sink.write({"step": step, "loss": 1.0})
    finish([logger], exit_code=0)
    return logged


def test_a_row_that_was_logged_is_not_logged_again(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = log_steps(run, range(1, 7), monkeypatch)
    logged += log_steps(run, range(4, 9), monkeypatch)  # from a checkpoint before step 4
    assert logged == [(step, step - 1) for step in range(1, 9)]


def test_where_the_file_has_lost_rows_new_ones_are_logged_all_the_same(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their numbers are not those of rows that W&B has had."""
    logged = log_steps(run, range(1, 7), monkeypatch)
    lines = run.metrics_file.read_text().splitlines(keepends=True)
    run.metrics_file.write_text("".join(lines[:-3]))
    logged += log_steps(run, range(7, 9), monkeypatch)
    assert logged == [(step, step - 1) for step in range(1, 9)]


def test_the_death_of_wandbs_own_process_is_told_and_stops_nothing(
    run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    (logger,) = offline(run)
    stats = [file.read_text() for file in Path("/proc").glob("[0-9]*/stat")]
    [service] = [int(one.split()[0]) for one in stats if re.search(rf"\(wandb-core\) \w {os.getpid()} ", one)]
    os.kill(service, signal.SIGKILL)
    os.waitpid(service, 0)
    with caplog.at_level(logging.WARNING):
        for step in range(100):
            logger.log_metrics({"loss": 1.0}, step)
        record([logger], run, RESULT)
        finish([logger], exit_code=0)
    assert caplog.text.count("W&B takes no more rows") == 1


class Broken(CSVLogger):
    """A logger that cannot log."""

    def log_metrics(self, *args: Any, **kwargs: Any) -> None:
        raise OSError("no space")

    def finalize(self, status: str) -> None:
        raise OSError("no space")


def test_a_loggers_trouble_is_told_and_does_not_keep_the_others_from_their_part(
    run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    good = CSVLogger(run.path, name="good", version="")
    record([Broken(run.path), good], run, RESULT)
    finish([Broken(run.path), good], exit_code=0)
    assert caplog.text.count("no space") == 2
    assert "31.5" in (run.path / "good" / "metrics.csv").read_text()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("+logger.mine._target_=nowhere.Logger", r"nowhere\.Logger cannot be found"),
        (
            "+logger.csv._target_=lightning.pytorch.loggers.CSVLoger",
            r"CSVLoger names nothing in .*did you mean CSVLogger",
        ),
        ("logger.csv.name=x", r"logger\.csv has not been chosen|logger\.csv\.name is not a key"),
        ("+logger.wandb.project_name=x", r"logger\.wandb\.project_name is not a key .*did you mean project\?"),
        ("+logger.wandb.config=x", r"logger\.wandb\.config is not a key"),
    ],
)
def test_a_logger_that_cannot_be_is_one_sentence(typed: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        resolve_valid(compose([typed]))


def test_several_loggers_take_the_same_rows_in_the_runs_directory_under_its_id_and_change_no_environment(
    run: RunDir,
) -> None:
    node = resolve(compose(["logger=[csv,wandb]"]))["logger"]
    csv, offline = loggers = make_parts("logger", node, Logger, run=run, config=CONFIG, save_dir=run.path)
    for logger in loggers:
        LoggerSink(logger).write({"step": 1, "loss": 2.5})
    record(loggers, run, RESULT)
    finish(loggers, exit_code=0)
    assert "2.5" in (Path(csv.log_dir) / "metrics.csv").read_text()
    assert Path(csv.log_dir) == run.path / "csv" / "version_0"
    id = logged_as(run)
    [folder] = run.path.glob(f"wandb/offline-run-*-{id}")
    assert (folder / f"run-{id}.wandb").stat().st_size > 0
    assert offline.version == id
    assert "WANDB_MODE" not in os.environ


def test_tensorboards_files_lie_in_the_runs_directory(run: RunDir) -> None:
    node = resolve(compose(["logger=tensorboard"]))["logger"]
    [logger] = make_parts("logger", node, Logger, run=run, config=CONFIG, save_dir=run.path)
    LoggerSink(logger).write({"step": 1, "loss": 2.5})
    finish([logger], exit_code=0)
    assert [*run.path.glob("tensorboard/events.out.*")]


def test_without_tensorboard_one_sentence_says_what_to_install(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    for available in ("_TENSORBOARD_AVAILABLE", "_TENSORBOARDX_AVAILABLE"):
        monkeypatch.setattr(f"lightning.fabric.loggers.tensorboard.{available}", False)
        monkeypatch.setattr(f"lightning.pytorch.loggers.tensorboard.{available}", False, raising=False)
    node = resolve(compose(["logger=tensorboard"]))["logger"]
    with pytest.raises(UserError, match=r"logger\.tensorboard: .*`tensorboard`.*`pip install`"):
        make_parts("logger", node, Logger, run=run, config=CONFIG, save_dir=run.path)
