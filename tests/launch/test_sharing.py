"""Several processes, each typed with the same command, share the runs of one sweep."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]
Soon = Callable[[Callable[[], bool]], bool]
ARMS = [f"A{number}" for number in range(6)]

# Takes the run's lock as training does, notes that it began, works for a moment, and finishes.
WORK = """
import os, pathlib, signal, sys, time
from filelock import FileLock, Timeout
run = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
lock = FileLock(run / ".lock", timeout=0.3)
try:
    lock.acquire()
except Timeout:
    sys.exit(75)
if not (run / "result.json").exists():
    with (run / "began").open("a") as began:
        began.write(f"{os.getpid()}\\n")
    while (run.parents[2] / "hold").exists():
        time.sleep(0.02)
    time.sleep(0.1)
"""
SWEEP = """
import sys
from pathlib import Path
from etude.launch.resources import Slots
from etude.launch.slots import run_side_by_side
from etude.logs import logging_to
from etude.store.run_dir import RunDir
program, *paths = sys.argv[1:]
logging_to(None)
command = lambda run_dir: [sys.executable, "-c", program, str(run_dir.path)]
cost = lambda configs: [0.0] * len(configs)
run_side_by_side([RunDir(Path(path)) for path in paths], Slots(workers=2), grace=1, cost=cost, command=command)
"""


def sweep(runs: Sequence[RunDir], program: str) -> subprocess.Popen[str]:
    """A sweep over the runs in a process of its own, which believes that it has a terminal."""
    words = [sys.executable, "-c", SWEEP, program, *(str(run.path) for run in runs)]
    environment = os.environ | {"TTY_COMPATIBLE": "1", "TTY_INTERACTIVE": "1", "COLUMNS": "120", "LINES": "50"}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def last_table(printed: str) -> list[str]:
    """The rows of the last table that a sweep drew."""
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", printed)
    return [line.rstrip() for line in plain.splitlines() if line.startswith("table3/")][-len(ARMS) :]


def began(run: RunDir) -> list[str]:
    """The processes that have worked on a run."""
    file = run.path / "began"
    return file.read_text().split() if file.exists() else []


def test_two_sweeps_share_the_runs_and_both_end_well_with_the_same_table(make_run: Make, finish: str) -> None:
    runs = [make_run(arm) for arm in ARMS]
    both = [sweep(runs, WORK + finish) for _ in range(2)]
    printed = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    assert [len(began(run)) for run in runs] == [1] * len(runs), "each run has had one process"
    # A sweep that began when the other had finished a run already skips it.
    one, other = ([row.replace("skipped ", "finished") for row in last_table(out)] for out, _ in printed)
    assert one == other
    assert [row.split()[3] for row in one] == ["finished"] * len(runs)


def test_what_a_killed_sweep_was_at_is_finished_by_the_other(
    make_run: Make, finish: str, soon: Soon, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    runs = [make_run(arm) for arm in ARMS]
    both = [sweep(runs, WORK + finish) for _ in range(2)]
    assert soon(lambda: sum(map(len, map(began, runs))) == 4), "two runs each"
    both[0].kill()
    hold.unlink()
    _, errors = both[1].communicate(timeout=60)
    both[0].communicate(timeout=60)
    assert (both[0].returncode, both[1].returncode) == (-signal.SIGKILL, 0), errors
    assert all(run.finished for run in runs)
    assert sorted(len(began(run)) for run in runs)[-1] <= 2, "only what the killed one was at has begun twice"
