"""Nothing outlives its run: not what a dead command left behind, not a command whose supervisor or sweep has died."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import etude.launch
from etude.launch.process import start_supervised

KEEPER = Path(etude.launch.__file__).with_name("supervisor.py")

Alive = Callable[[int], bool]
Soon = Callable[[Callable[[], bool]], bool]


def supervisor(program: str, *arguments: str, grace: float = 30) -> subprocess.Popen[bytes]:
    """A supervisor whose parent is this process."""
    kept = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen([sys.executable, "-I", "-S", str(KEEPER), str(os.getpid()), str(grace), *kept])


@pytest.mark.parametrize("code", [0, 2])
def test_it_ends_with_the_exit_status_of_its_command(code: int) -> None:
    assert supervisor(f"raise SystemExit({code})").wait() == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_it_ends_by_the_signal_that_killed_its_command(number: signal.Signals) -> None:
    program = f"import os, signal; signal.signal({number:d}, signal.SIG_DFL); os.kill(os.getpid(), {number:d})"
    program = program if number != signal.SIGKILL else "import os; os.kill(os.getpid(), 9)"
    assert supervisor(program).wait() == -number


def test_a_command_that_does_not_exist_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start_supervised(["./no-such-program"], log=log, environment={}, grace=1)
    process.wait()
    assert process.poll() == 127
    assert log.read_text() == "./no-such-program cannot be run: No such file or directory\n"


@pytest.fixture
def pids(tmp_path: Path, soon: Soon) -> Callable[[], list[int]]:
    """The processes of the family that runs in the test's folder, once they are all there."""

    def read() -> list[int]:
        assert soon((tmp_path / "pids").exists)
        return [int(pid) for pid in (tmp_path / "pids").read_text().split()]

    return read


Pids = Callable[[], list[int]]


def none(alive: Alive, pids: Sequence[int]) -> Callable[[], bool]:
    return lambda: not any(alive(pid) for pid in pids)


def test_what_ends_by_itself_is_let_end(tmp_path: Path) -> None:
    late = "import pathlib, sys, time; time.sleep(0.5); pathlib.Path(sys.argv[1], 'late').touch()"
    start = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {late!r}, sys.argv[1]])"
    assert supervisor(start, str(tmp_path)).wait(30) == 0
    assert (tmp_path / "late").exists()


def test_asked_to_stop_it_asks_its_command_alone_and_waits(tmp_path: Path, soon: Soon) -> None:
    child = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: pathlib.Path(sys.argv[1], 'asked').touch())\n"
        "pathlib.Path(sys.argv[1], 'ready').touch()\n"
        "time.sleep(0.5)\n"
    )
    program = (
        "import pathlib, signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(helper.wait() + 7))\n"
        f"helper = subprocess.Popen([sys.executable, '-c', {child!r}, sys.argv[1]])\n"
        "signal.pause()\n"
    )
    kept = supervisor(program, str(tmp_path))
    assert soon((tmp_path / "ready").exists)
    kept.send_signal(signal.SIGTERM)
    assert kept.wait(30) == 7
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    ("number", "grace"), [(signal.SIGTERM, 0.3), (signal.SIGUSR1, 3600)], ids=["after the grace", "at once"]
)
def test_a_command_that_heeds_nothing_is_killed(
    number: signal.Signals, grace: float, family: str, tmp_path: Path, pids: Pids, alive: Alive
) -> None:
    kept = supervisor(family, str(tmp_path), "stubborn", grace=grace)
    started = pids()
    kept.send_signal(number)
    assert kept.wait(30) == -signal.SIGKILL
    assert none(alive, started)()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a process whose parent died")
def test_a_command_dies_with_its_supervisor(family: str, tmp_path: Path, pids: Pids, alive: Alive, soon: Soon) -> None:
    kept = supervisor(family, str(tmp_path))
    leader = pids()[0]
    kept.kill()
    assert soon(none(alive, [leader]))
    for orphan in pids()[1:]:
        os.kill(orphan, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a process whose parent died")
def test_a_sweep_that_is_killed_takes_all_along(
    family: str, tmp_path: Path, pids: Pids, alive: Alive, soon: Soon
) -> None:
    sweep = (
        "import sys, time; from pathlib import Path; from etude.launch.process import start_supervised\n"
        "program, folder = sys.argv[1:]\n"
        "command = [sys.executable, '-c', program, folder, 'stubborn']\n"
        "start_supervised(command, log=Path(folder, 'log'), environment={}, grace=0.5)\n"
        "time.sleep(120)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", sweep, family, str(tmp_path)])
    started = pids()
    process.kill()
    process.wait()
    assert soon(none(alive, started))
