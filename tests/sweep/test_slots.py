import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from etude.errors import UserError
from etude.rundir import RunDir
from etude.sweep.slots import SweepFailed, run_side_by_side, slots

Make = Callable[..., RunDir]
Programs = Callable[[dict[str, str]], Callable[[RunDir], Sequence[str]]]

MISHAPS = {
    "raises": ("raise ValueError('the loss is not a number')", "exit status 1"),
    "exits": ("import os; print('before the end', flush=True); os._exit(3)", "exit status 3"),
    "quits": ("print('Lightning ends a terminated run politely')", "exit status 0, without a result"),
    "is_killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
}


@pytest.mark.parametrize("mishap", MISHAPS)
def test_a_run_that_fails_takes_no_other_along_and_is_told_with_its_last_lines(
    mishap: str, make_run: Make, finish: str, programs: Programs
) -> None:
    program, reason = MISHAPS[mishap]
    runs = [make_run(arm) for arm in ("A1", mishap, "A2")]
    command = programs({"A1": finish, mishap: program, "A2": finish})
    with pytest.raises(SweepFailed) as failure:
        run_side_by_side(runs, workers=1, threads=1, command=command)
    message = str(failure.value)
    assert message.startswith("1 of 3 runs failed")
    assert f"table3/{mishap} seed 1 failed: {reason}" in message
    assert {"raises": "the loss is not a number", "exits": "before the end"}.get(mishap, "") in message
    assert [run.finished for run in runs] == [True, False, True]


def test_every_failed_run_is_listed_at_the_end(make_run: Make, programs: Programs) -> None:
    command = programs({"A1": "print('one')", "A2": "print('two')"})
    with pytest.raises(SweepFailed, match=r"(?s)2 of 2 runs failed.*A1.*one.*A2.*two"):
        run_side_by_side([make_run("A1"), make_run("A2")], workers=2, threads=1, command=command)


def test_the_last_lines_are_those_of_this_process_not_of_an_earlier_one(make_run: Make, programs: Programs) -> None:
    run = make_run("A1")
    run.log_file.write_text("an old story\n")
    with pytest.raises(SweepFailed) as failure:
        run_side_by_side([run], workers=1, threads=1, command=programs({"A1": "print('10%\\r90%')"}))
    assert "an old story" not in str(failure.value)
    assert "    90%" in str(failure.value)
    assert run.log_file.read_text().startswith("an old story\n")


def test_finished_runs_are_skipped_without_a_process(make_run: Make) -> None:
    run = make_run("A1")
    run.write_result({"finished": True})

    def command(run_dir: RunDir) -> list[str]:
        raise AssertionError("nothing must be started")

    run_side_by_side([run], workers=1, threads=1, command=command)


def test_a_run_named_twice_runs_once(make_run: Make, programs: Programs, finish: str) -> None:
    run = make_run("A1")
    once = f"import sys, pathlib; pathlib.Path(sys.argv[1], 'once').open('x'); {finish}"
    run_side_by_side([run, RunDir(run.path)], workers=2, threads=1, command=programs({"A1": once}))
    assert run.finished


def test_there_are_never_more_at_once_than_slots_and_no_slot_stays_empty(
    make_run: Make, programs: Programs, finish: str, tmp_path: Path
) -> None:
    program = (
        f"import os, pathlib, time; me = pathlib.Path({str(tmp_path)!r}, f'{{os.getpid()}}.alive'); me.touch();"
        "time.sleep(0.3); n = len(list(me.parent.glob('*.alive'))); print(n); time.sleep(0.3); me.unlink();" + finish
    )
    runs = [make_run(f"A{i}") for i in range(5)]
    run_side_by_side(runs, workers=2, threads=1, command=programs({f"A{i}": program for i in range(5)}))
    at_once = [int(run.log_file.read_text()) for run in runs]
    assert max(at_once) == 2


def test_the_longest_run_starts_first(make_run: Make, programs: Programs, finish: str) -> None:
    runs = [make_run(f"L{layers}", layers=layers) for layers in (2, 6, 4)]
    program = f"import time; print(time.time()); {finish}"
    run_side_by_side(runs, workers=1, threads=1, command=programs({f"L{n}": program for n in (2, 6, 4)}))
    started = {run.path.parent.name: float(run.log_file.read_text()) for run in runs}
    assert sorted(started, key=lambda arm: started[arm]) == ["L6", "L4", "L2"]


def test_a_run_gets_its_threads_no_input_and_a_session_of_its_own(
    make_run: Make, programs: Programs, finish: str
) -> None:
    program = (
        "import os, sys; print(os.environ['OMP_NUM_THREADS'], repr(sys.stdin.read()), os.getsid(0) == os.getpid());"
    )
    run = make_run("A1")
    run_side_by_side([run], workers=1, threads=3, command=programs({"A1": program + finish}))
    assert run.log_file.read_text() == "3 '' True\n"


SWEEP = """
import sys
from pathlib import Path
from etude.rundir import RunDir
from etude.sweep.slots import run_side_by_side

child = '''
import os, signal, subprocess, sys, time
from pathlib import Path
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
Path(sys.argv[1], "pids").write_text(f"{os.getpid()} {grandchild.pid}")
time.sleep(60)
'''
command = lambda run_dir: [sys.executable, "-c", child, str(run_dir.path), run_dir.path.parent.name]
run_side_by_side([RunDir(Path(path)) for path in sys.argv[1:]], workers=2, threads=1, command=command, grace=0.5)
"""


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone(pids: Sequence[int]) -> bool:
    """Whether all have ended; a process that was just killed may need a moment to die."""
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(alive(pid) for pid in pids)


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_leaves_nothing_running(number: signal.Signals, make_run: Make) -> None:
    runs = [make_run(arm) for arm in ("polite", "stubborn", "never_started")]
    sweep = subprocess.Popen(
        [sys.executable, "-c", SWEEP, *(str(run.path) for run in runs)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # where the tests run under nohup, it is ignored
    )
    files = [run.path / "pids" for run in runs[:2]]
    deadline = time.monotonic() + 20
    while not all(file.exists() and file.read_text() for file in files):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pids = [int(pid) for file in files for pid in file.read_text().split()]
    assert all(alive(pid) for pid in pids)
    sweep.send_signal(number)
    _, errors = sweep.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert "0 of 3 runs are finished" in errors
    assert gone(pids)
    assert not (runs[2].path / "pids").exists()


@needs_proc
def test_what_a_dead_run_left_behind_is_ended_too(make_run: Make, programs: Programs) -> None:
    run = make_run("A1")
    program = (
        "import os, pathlib, subprocess, sys;"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "pathlib.Path(sys.argv[1], 'pid').write_text(str(left.pid)); os._exit(1)"
    )
    with pytest.raises(SweepFailed):
        run_side_by_side([run], workers=1, threads=1, command=programs({"A1": program}))
    assert gone([int((run.path / "pid").read_text())])


def test_the_callers_signal_handlers_are_given_back(make_run: Make, programs: Programs, finish: str) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    run_side_by_side([make_run("A1")], workers=1, threads=1, command=programs({"A1": finish}))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_auto_is_as_many_runs_as_the_usable_cores_can_feed() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert 1 <= slots("auto", 1) <= cores
    assert slots("auto", 10_000) == 1
    assert slots(7, 1) == 7


@pytest.mark.parametrize(("workers", "threads"), [(0, 1), ("many", 1), (2.5, 1), ("auto", 0), (True, 1)])
def test_slots_that_make_no_sense_are_refused_by_key(workers: int | str, threads: int) -> None:
    with pytest.raises(UserError, match=r"hydra\.launcher\.(workers|threads)="):
        slots(workers, threads)
