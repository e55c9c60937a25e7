"""What is kept on this machine, and what `wandb sync` makes of it."""

import logging
import os
import pty
import re
import select
import shlex
import subprocess
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests import warm

from etude.store.run_dir import RunDir
from etude.store.wandb_id import logged_as, rows_file
from etude.training.loggers import finish, wandb


def sync(server: Any, command: str) -> list[int]:
    """The steps that have arrived once a `wandb sync` line has been typed."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return server.steps()


@pytest.mark.slow
@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_a_killed_run_and_its_successor_are_synced_to_one_curve(
    server: Any, run: RunDir, killed_after: Any, go_on: Any
) -> None:
    killed_after(run, "offline", 12, seconds=1.5)  # what is logged is on the disk within a second
    go_on(run, "offline", 9, 20)
    assert server.runs() == []
    assert sync(server, f"wandb sync {run.path / 'wandb'}") == list(range(1, 21))
    assert (server.run()["complete"], server.run()["exitcode"]) == (True, 0)


def test_an_unreachable_server_sends_the_run_offline_with_the_line_that_sends_it_later(
    server: Any, run: RunDir, go_on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server.outage(600)
    with caplog.at_level(logging.WARNING):
        go_on(run, "online", 1, 3)
    server.outage(0)
    told = re.search(r"nothing is sent to W&B \(.*\); logging offline, `(wandb sync .*)` sends it later", caplog.text)
    assert told
    assert server.runs() == []
    assert sync(server, told[1]) == [1, 2, 3]


def test_what_an_outage_at_the_end_kept_back_is_sent_by_the_line_that_is_shown(
    server: Any, run: RunDir, go_on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    go_on(run, "online", 1, 3, meanwhile=lambda step: step == 3 and server.outage(600))
    server.outage(0)
    told = re.search(r"W&B has not taken everything; `(wandb sync .*)` sends it", caplog.text)
    assert told
    assert sync(server, told[1]) == [1, 2, 3]


def test_where_wandb_cannot_be_started_the_run_goes_on_without_it(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def init(**how: Any) -> None:
        raise RuntimeError("no port file\nwithin 30 s")

    monkeypatch.setattr("wandb.init", init)
    assert wandb(run, run.config(), mode="offline", project="etude", entity=None) == []
    told = [record.getMessage() for record in caplog.records if record.name.startswith("etude")]
    assert told == ["W&B cannot be started (no port file); the run goes on without it"]


def test_a_key_that_is_missing_sends_the_run_offline_and_at_a_terminal_nobody_is_asked_for_it(
    server: Any, run: RunDir, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """W&B would ask how to log in, and a run that was left alone would wait for ever."""
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    ours, theirs = pty.openpty()
    command = [str(warm.python()), str(Path(__file__).with_name("logging_rows.py")), str(run.path), "online", "1", "3"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 60
    while b'"logged": 3' not in shown and time.monotonic() < deadline:
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 1000)
    process.kill()
    process.wait()
    os.close(ours)
    assert b'"logged": 3' in shown, shown.decode()
    assert b"nothing is sent to W&B (No API key configured." in shown
    assert [*run.path.glob("wandb/offline-run-*")]


def test_an_empty_variable_is_none(server: Any, run: RunDir, monkeypatch: pytest.MonkeyPatch, go_on: Any) -> None:
    for name in ("WANDB_MODE", "WANDB_SWEEP_ID", "WANDB_RUN_ID"):
        monkeypatch.setenv(name, "")
    go_on(run, "offline", 1, 3)
    assert server.runs() == []
    assert [*run.path.glob("wandb/offline-run-*")]
    monkeypatch.setenv("WANDB_MODE", "")
    go_on(run, "online", 4, 5)
    assert server.runs() == [logged_as(run)]


def test_what_a_server_answers_in_json_is_left_out_of_the_sentence(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin = import_module("wandb").init

    def init(**how: Any) -> Any:
        if how["mode"] == "offline":
            return begin(**how)
        raise RuntimeError('no status: returned error 401: {"data": null, "errors": [{"message": "not logged in"}]}')

    monkeypatch.setattr("wandb.init", init)
    finish(wandb(run, run.config(), mode="online", project="etude", entity=None), exit_code=0)
    [told] = [message for message in caplog.messages if message.startswith("nothing is sent")]
    assert told.startswith("nothing is sent to W&B (no status: returned error 401); logging offline")


@pytest.mark.slow
def test_a_killed_run_that_began_offline_and_goes_on_online_is_sent_whole(
    server: Any, run: RunDir, killed_after: Any, go_on: Any
) -> None:
    """And if a notebook that uses W&B itself started it: its service would keep the id of what was killed in use."""
    import_module("wandb").setup()
    assert "WANDB_SERVICE" in os.environ  # which a process inherits
    killed_after(run, "offline", 12)
    go_on(run, "online", 9, 20)
    assert server.steps() == list(range(1, 21))
    assert sync(server, f"wandb sync {run.path / 'wandb'}") == list(range(1, 21))  # which finds nothing left to send


@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_what_callbacks_logged_offline_is_not_lost_where_a_run_goes_on_online(
    server: Any, run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    """`metrics.csv` lacks their rows, so that nothing but W&B's own file could send them."""
    for mode, step in (("offline", 1), ("online", 2), ("online", 3)):
        [logger] = wandb(run, run.config(), mode=mode, project="etude", entity=None)  # type: ignore[arg-type]
        logger.log_metrics({"gradient": 0.5}, step)
        finish([logger], exit_code=0)
        if step == 2:
            told = re.search(r"`(wandb sync .*)` sends it later", caplog.text)
            assert told
            assert sync(server, told[1]) == []
    assert [row["step"] for row in server.run()["history"] if "gradient" in row] == [1, 2, 3]
    assert len([*run.path.glob("wandb/run-*")]) == 1, "once all has been sent, it goes on online"


def test_rows_that_fell_into_an_outage_are_sent_by_whoever_goes_on(server: Any, run: RunDir, go_on: Any) -> None:
    """As above, but the server knows the run, and none of its rows."""
    finish(wandb(run, run.config(), mode="online", project="etude", entity=None), exit_code=1)
    assert (server.run()["complete"], server.run()["exitcode"]) == (True, 1), "a failed run shows as failed"
    rows_file(run, logged_as(run)).write_bytes(b"...")
    run.metrics_file.write_text("step,loss\n" + "".join(f"{step},{1 / step}\n" for step in (1, 2, 3)))
    go_on(run, "online", 4, 5)
    assert server.steps() == [1, 2, 3, 4, 5]
