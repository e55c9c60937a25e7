"""Wait for a signal to stop, or for the end of a child process."""

import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Records signals instead of raising, so that none interrupts between starting a process and listing it."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self._receiver, self._wakeup = socket.socketpair()
        self._receiver.setblocking(False)
        self._wakeup.setblocking(False)

    def wait(self, seconds: float) -> None:
        """Sleep until a signal arrives or a child process ends; return at once if one has since the last call."""
        if select.select([self._receiver], [], [], seconds)[0]:
            self._receiver.recv(4096)

    def is_repeated(self, count: int) -> bool:
        """Return whether a signal came after the first `count`; SIGHUP, which comes in bursts, does not count."""
        return any(number != signal.SIGHUP for number in self.caught[count:])


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Record Ctrl-C, SIGTERM, SIGHUP and ends of children within the context. For the main thread."""
    caught = Interrupts()

    def record(number: int, frame: FrameType | None) -> None:
        caught.caught.append(number)

    def ignore(number: int, frame: FrameType | None) -> None:
        """Do nothing: the signal itself wakes `wait`."""

    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {s: record for s in stopping if signal.getsignal(s) != signal.SIG_IGN} | {signal.SIGCHLD: ignore}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    previous_fd = signal.set_wakeup_fd(caught._wakeup.fileno(), warn_on_full_buffer=False)
    try:
        yield caught
    finally:
        signal.set_wakeup_fd(previous_fd)
        for number, handler in before.items():
            signal.signal(number, handler)
        caught._receiver.close()
        caught._wakeup.close()
