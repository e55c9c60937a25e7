"""Supervise the command of one run, so that none of its processes outlives the run or the sweep.

This file is run as a script, so it imports nothing slow:

    python -I -S supervisor.py PARENT GRACE COMMAND...

Processes that torchrun or W&B's client start have their own session, so a signal to a process group does not reach
them. Therefore the supervisor adopts every orphan below it (as a "subreaper", on Linux), and ends only when it has no
child left. After the command has ended, its remaining processes get a moment to end by themselves.

    SIGTERM   ask the command to stop, and kill everything GRACE seconds later; also sent when PARENT dies (Linux)
    SIGUSR1   kill everything now

The supervisor ends as the command ended: with its exit status, or by the same signal. On systems other than Linux, only
the command's process group is killed, and the death of PARENT is not noticed.
"""

import os
import signal
import sys
from collections.abc import Iterator

_ASKING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_HEEDED = _ASKING | {signal.SIGCHLD, signal.SIGALRM, signal.SIGUSR1}
_FAREWELL = 2.0  # seconds for processes that the command left behind: W&B's client may still have rows to write
_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>


def supervise(command: list[str], grace: float) -> int:
    """Run `command` until it and all processes that it started have ended.

    Args:
        command: program and arguments.
        grace: seconds between asking it to stop and killing it.

    Returns:
        Its exit status, or minus the number of the signal that killed it.
    """
    leader = _start(command)
    code: int | None = None
    killing = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # no child is left
            return 1 if code is None else code
        if pid == leader:
            code = os.waitstatus_to_exitcode(status)
            signal.setitimer(signal.ITIMER_REAL, _FAREWELL)
        if pid:
            continue
        if killing:  # repeated after each death, as the orphans of a dead process become our children
            _kill_children(leader)
        number = signal.sigwait(_HEEDED)
        if number in _ASKING and code is None:
            os.kill(leader, signal.SIGTERM)  # only the command: it decides how to stop its own children
            signal.setitimer(signal.ITIMER_REAL, max(grace, 1e-3))
        killing = killing or number in (signal.SIGALRM, signal.SIGUSR1)


def _start(command: list[str]) -> int:
    """Start `command` in its own session, with unblocked signals; the kernel kills it if the supervisor dies."""
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _die_with(supervisor, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _kill_children(leader: int) -> None:
    for pid in _children() if _LINUX else [-leader]:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # it has just ended
            continue


def _children() -> Iterator[int]:
    """Yield the ids of the processes whose parent is this one."""
    me = os.getpid()
    for name in os.listdir("/proc"):  # noqa: PTH208 (pathlib takes longer to import than the supervisor to start)
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    after_its_name = file.read().rpartition(b")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(after_its_name[1]) == me:
                yield int(name)


def _die_with(parent: int, number: int) -> None:
    """Let the kernel send signal `number` when the parent dies; exit at once if it is already dead."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        import ctypes

        ctypes.CDLL(None).prctl(option, int(value), 0, 0, 0)


def _end_as(code: int) -> None:
    """End with this exit status, or by this signal if negative; without a core dump, as the command has written one."""
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


def main() -> None:
    """Supervise the command given as arguments."""
    parent, grace, *command = sys.argv[1:]
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # without a handler, it need not stay pending
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)  # for `sigwait`
    _die_with(int(parent), signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _end_as(supervise(command, float(grace)))


if __name__ == "__main__":
    main()
