"""Waiting for what matters to a sweep: a signal to stop, or the end of a process."""

import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """The signals caught so far: noted, not raised, for none may strike between a process and its entry in a list."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self._bell, self._rope = socket.socketpair()
        self._bell.setblocking(False)
        self._rope.setblocking(False)

    def wait(self, seconds: float) -> None:
        """Sleep until a signal comes or a child process ends; if one has since the last call, not at all."""
        if select.select([self._bell], [], [], seconds)[0]:
            self._bell.recv(4096)

    def impatience(self, asked: int) -> bool:
        """Whether somebody asks again, after so many signals; a terminal that closes hangs up several times."""
        return any(number != signal.SIGHUP for number in self.caught[asked:])


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Ctrl-C, SIGTERM and SIGHUP are noted meanwhile, and the ends of children. For the main thread."""
    heard = Interrupts()

    def note(number: int, frame: FrameType | None) -> None:
        heard.caught.append(number)

    def nothing(number: int, frame: FrameType | None) -> None:
        """A child has ended: the bell rings, and whoever waits looks."""

    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {s: note for s in stopping if signal.getsignal(s) != signal.SIG_IGN} | {signal.SIGCHLD: nothing}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    bell = signal.set_wakeup_fd(heard._rope.fileno(), warn_on_full_buffer=False)
    try:
        yield heard
    finally:
        signal.set_wakeup_fd(bell)
        for number, handler in before.items():
            signal.signal(number, handler)
        heard._bell.close()
        heard._rope.close()
