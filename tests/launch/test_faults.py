"""What befalls a run stays with it: the others finish, it is told with its last lines, and tried again if asked."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.errors import UserError
from etude.launch.process import describe_exit
from etude.launch.resources import Slots
from etude.launch.slots import run_side_by_side
from etude.launch.sweep import SweepFailed
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]
Programs = Callable[[dict[str, str]], Callable[[RunDir], Sequence[str]]]

MISHAPS = {  # what the run does, why it is said to have failed, and what of its last lines is shown
    "raises": ("raise ValueError('the loss is not a number')", "exit status 1", "the loss is not a number"),
    "exits": ("import os; print('before the end', flush=True); os._exit(3)", "exit status 3", "before the end"),
    "quits": ("print('the trainer ends politely')", "exit status 0, without a result", "politely"),
    "is_killed": (
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "killed by SIGKILL (the machine may be out of memory)",
        "printed nothing",
    ),
    "crashes": ("import os; os.abort()", "killed by SIGABRT", "printed nothing"),
    "hangs": (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
        "took longer than 2 s",
        "deaf",
    ),
}


@pytest.mark.parametrize("mishap", [pytest.param(m, marks=[pytest.mark.slow] * (m == "hangs")) for m in MISHAPS])
def test_a_run_that_fails_takes_no_other_along_and_is_told_with_its_last_lines(
    mishap: str, make_run: Make, finish: str, programs: Programs
) -> None:
    program, reason, said = MISHAPS[mishap]
    runs = [make_run(arm) for arm in ("A1", mishap, "A2")]
    command = programs({"A1": finish, mishap: program, "A2": finish})
    timeout = 2 if mishap == "hangs" else None
    with pytest.raises(SweepFailed) as failure:
        run_side_by_side(runs, Slots(workers=1), timeout=timeout, grace=0.2, cost=in_order, command=command)
    message = str(failure.value)
    assert message.startswith("1 of 3 runs failed")
    assert f"table3/{mishap} seed 1 failed: {reason}" in message
    assert said in message
    assert [run.finished for run in runs] == [True, False, True]


def test_a_signal_that_has_no_name_ends_a_run_and_no_sweep() -> None:
    assert describe_exit(-40) == "killed by signal 40"


def in_order(configs: Sequence[dict[str, Any]]) -> Sequence[float]:
    """All count alike."""
    return [0.0] * len(configs)


def test_a_process_that_cannot_be_started_is_a_failed_run(make_run: Make, programs: Programs, finish: str) -> None:
    runs = [make_run("A1"), make_run("A2")]
    runs[0].log_file.mkdir()
    with pytest.raises(SweepFailed, match=r"A1 seed 1 failed: could not be started: .*Is a directory"):
        run_side_by_side(runs, Slots(workers=2), command=programs({"A1": finish, "A2": finish}))
    assert runs[1].finished


def test_a_clock_that_is_set_back_makes_no_run_shorter_than_nothing(
    make_run: Make, programs: Programs, finish: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    hours, really = [0], time.time

    def back() -> float:
        hours[0] += 1
        return really() - 3600 * hours[0]

    monkeypatch.setattr(time, "time", back)
    run = make_run("A1")
    run_side_by_side([run], Slots(workers=1), cost=in_order, command=programs({"A1": finish}))
    [told] = [message for message in caplog.messages if "finished in" in message]
    assert " finished in 0:" in told


FLAKY = """
import pathlib, sys
attempt = len(list(pathlib.Path(sys.argv[1]).glob("attempt*"))) + 1
pathlib.Path(sys.argv[1], f"attempt{attempt}").touch()
print("attempt", attempt)
if attempt < 3:
    sys.exit(STATUS)
"""


def attempts(run: RunDir) -> int:
    return len([*run.path.glob("attempt*")])


def test_a_failed_run_is_tried_again_behind_the_others_and_each_failure_is_told(
    make_run: Make, programs: Programs, finish: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    flaky, steady = make_run("flaky"), make_run("steady")
    command = programs({"flaky": FLAKY.replace("STATUS", "1") + finish, "steady": finish})
    run_side_by_side([flaky, steady], Slots(workers=1), retries=2, cost=in_order, command=command)
    assert attempts(flaky) == 3
    events = [message.splitlines() for message in caplog.messages[1:]]
    assert [lines[0].partition(";")[0].partition(" in ")[0] for lines in events] == [
        "table3/flaky seed 1: started",
        "table3/flaky seed 1 failed: exit status 1, without a result",
        "table3/steady seed 1: started",
        "table3/steady seed 1: finished",
        "table3/flaky seed 1: started again, retry 1/2",
        "table3/flaky seed 1 failed (attempt 2): exit status 1, without a result",
        "table3/flaky seed 1: started again, retry 2/2",
        "table3/flaky seed 1: finished",
    ]
    assert events[1][1:] == ["    attempt 1", "it is tried again, behind those that wait: retry 1/2"]
    assert events[5][1:] == ["    attempt 2", "it is tried again, behind those that wait: retry 2/2"]


def test_a_run_is_started_as_it_was_launched_whatever_was_asked_for_since(
    make_run: Make, programs: Programs, finish: str
) -> None:
    """A second command, refused even, writes other devices into the configs of the runs that wait."""
    runs = [make_run("A1"), make_run("A2")]
    launched = runs[1].config_file.read_text()
    other = f"import pathlib; pathlib.Path({str(runs[1].config_file)!r}).write_text('trainer: {{devices: 4}}');"
    run_side_by_side(runs, Slots(workers=1), command=programs({"A1": other + finish, "A2": finish}), cost=in_order)
    assert runs[1].config_file.read_text() == launched


def of_three(first: str, finish: str) -> dict[str, str]:
    """Three programs that finish; before, A1 does something to another run."""
    return {"A1": first + finish, "A2": finish, "A3": finish}


def test_a_waiting_run_whose_directory_is_deleted_has_failed_and_stops_no_other(
    make_run: Make, programs: Programs, finish: str
) -> None:
    runs = [make_run("A1"), make_run("A2"), make_run("A3")]
    delete = f"import shutil; shutil.rmtree({str(runs[1].path)!r});"
    with pytest.raises(SweepFailed, match=r"1 of 3 runs failed(?s:.*)A2 seed 1 failed: could not be started"):
        run_side_by_side(runs, Slots(workers=1), command=programs(of_three(delete, finish)), cost=in_order)
    assert [run.finished for run in runs] == [True, False, True]


def test_a_run_whose_config_cannot_be_written_has_failed_and_stops_no_other(
    make_run: Make, programs: Programs, finish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that is full: the config was frozen for other devices meanwhile, and has to be put back."""
    runs = [make_run("A1"), make_run("A2"), make_run("A3")]
    other = f"import pathlib; pathlib.Path({str(runs[1].config_file)!r}).write_text('trainer: {{devices: 4}}');"

    def full(path: Path, text: str) -> None:
        raise UserError(f"{path} cannot be written: No space left on device")

    monkeypatch.setattr("etude.launch.job.write_text", full)
    with pytest.raises(SweepFailed, match=r"(?s)1 of 3 runs failed.*A2 seed 1 failed: .*No space left on device"):
        run_side_by_side(runs, Slots(workers=1), command=programs(of_three(other, finish)), cost=in_order)
    assert [run.finished for run in runs] == [True, False, True]


def test_retries_come_to_an_end(make_run: Make, programs: Programs) -> None:
    run = make_run("flaky")
    with pytest.raises(SweepFailed, match=r"(?s)1 of 1 runs failed.*\(attempt 2\): exit status 1.*none is finished"):
        run_side_by_side([run], Slots(), retries=1, command=programs({"flaky": FLAKY.replace("STATUS", "1")}))
    assert attempts(run) == 2


def test_a_mistake_of_the_users_is_not_made_twice(make_run: Make, programs: Programs) -> None:
    run = make_run("flaky")
    with pytest.raises(SweepFailed, match="failed: exit status 2"):
        run_side_by_side([run], Slots(), retries=5, command=programs({"flaky": FLAKY.replace("STATUS", "2")}))
    assert attempts(run) == 1


@pytest.mark.slow
def test_a_hang_is_tried_again_with_all_its_time(make_run: Make, programs: Programs, finish: str) -> None:
    run = make_run("A1")
    program = (
        "import pathlib, sys, time; first = pathlib.Path(sys.argv[1], 'first'); old = first.exists(); first.touch();"
        f"time.sleep(0 if old else 600); {finish}"
    )
    run_side_by_side([run], Slots(), retries=1, timeout=2, grace=0.5, command=programs({"A1": program}))
    assert run.finished


@pytest.mark.slow
def test_a_run_that_finishes_while_it_is_asked_to_stop_is_finished(
    make_run: Make, programs: Programs, finish: str
) -> None:
    program = f"import signal, sys; signal.signal(15, lambda *_: (exec({finish!r}), sys.exit(0))); signal.pause()"
    run = make_run("A1")
    run_side_by_side([run], Slots(), timeout=4, command=programs({"A1": program}))
    assert run.finished


def test_what_a_failed_run_left_behind_has_ended_before_the_next_one_starts(
    make_run: Make, programs: Programs, finish: str, family: str, alive: Callable[[int], bool]
) -> None:
    dying, after = make_run("dying"), make_run("after")
    look = (
        "import os, pathlib, sys; pids = pathlib.Path(sys.argv[1], '../../dying/seed1-0123abcd/pids').read_text();"
        "print(*(pathlib.Path(f'/proc/{pid}').exists() for pid in pids.split()))"
    )
    last = family.rpartition("time.sleep(120)")[0]
    command = programs({"dying": f"{last}os._exit(1)", "after": f"{look};{finish}"})
    with pytest.raises(SweepFailed):
        run_side_by_side([dying, after], Slots(workers=1), cost=in_order, command=command)
    assert Path(after.log_file).read_text() == "False False False\n"


def test_a_directory_in_which_nothing_can_be_locked_is_its_own_runs_matter(
    make_run: Make, programs: Programs, finish: str
) -> None:
    runs = [make_run("A1"), make_run("A2")]
    runs[0].lock_file.mkdir()
    locks = f"import pathlib, sys; pathlib.Path(sys.argv[1], '.lock').open('a'); {finish}"
    with pytest.raises(SweepFailed, match=r"(?s)1 of 2 runs failed.*A1 seed 1 failed.*Is a directory"):
        run_side_by_side(runs, Slots(workers=1), cost=in_order, command=programs({"A1": locks, "A2": finish}))
    assert runs[1].finished


def test_fail_fast_ends_the_sweep_at_the_first_failure_and_stops_the_others_with_a_checkpoint(
    make_run: Make, programs: Programs, finish: str
) -> None:
    saves = """
import pathlib, signal, sys, time
run = pathlib.Path(sys.argv[1])
def save(number, frame):
    (run / "checkpoint").touch()
    sys.exit(130)
signal.signal(signal.SIGTERM, save)
(run / "ready").touch()
time.sleep(60)
"""
    fails = """
import pathlib, sys, time
while not list(pathlib.Path(sys.argv[1]).parents[1].glob("long/*/ready")):
    time.sleep(0.02)
sys.exit("the loss is not a number")
"""
    runs = [make_run(arm) for arm in ("long", "fails", "waits")]
    command = programs({"long": saves, "fails": fails, "waits": finish})
    told = r"(?s)1 of 3 runs failed:.*not a number.*2 were stopped or not begun; the same command goes on with all"
    with pytest.raises(SweepFailed, match=told):
        run_side_by_side(runs, Slots(workers=2), fail_fast=True, cost=in_order, command=command)
    assert (runs[0].path / "checkpoint").exists()
    assert not runs[2].log_file.exists()


def test_fail_fast_waits_for_the_retries_of_a_run(make_run: Make, programs: Programs, finish: str) -> None:
    again = "import pathlib, sys; again = pathlib.Path(sys.argv[1], 'again')"
    program = f"{again}\nif not again.exists(): sys.exit(again.touch() or 1)\n{finish}"
    runs = [make_run("A1"), make_run("A2")]
    command = programs({"A1": program, "A2": finish})
    run_side_by_side(runs, Slots(workers=1), retries=1, fail_fast=True, cost=in_order, command=command)
    assert all(run.finished for run in runs)
