"""Serve the page of a study on this machine, and update it while its runs go on."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.report.comparison import Compared
from etude.report.render.html.document import write_page

_INTERVAL = 2.0  # seconds between two checks for changes, by the server and by the page
_PAUSE = 4  # wait this many times as long as writing the page took, to leave the processor to the runs
_WAITING = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>étude</title>'
    "<p>No run is finished yet. This page fills in when one is.</p>"
)


def serve(make: Callable[[], Compared], study_runs: Path, port: int) -> None:
    """Serve the page of what `make` returns until Ctrl-C, on this machine only, and update it when `study_runs` change.

    Raises:
        UserError: the port is taken; 0 takes a free one.
    """
    with tempfile.TemporaryDirectory() as folder, serve_folder(Path(folder), port) as address:
        print(f"{address}  (Ctrl-C ends it)", flush=True)
        try:
            for _ in changes(study_runs):
                write_again(make, Path(folder) / "index.html")
        except KeyboardInterrupt:
            print()


@contextmanager
def serve_folder(folder: Path, port: int) -> Iterator[str]:
    """Serve a folder while the context is open; yield the address.

    Raises:
        UserError: the port is taken.
    """
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Quiet, directory=str(folder)))
    except OSError as error:
        raise UserError(f"--serve={port}: {error.strerror}; say --serve for a port that is free") from error
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def write_again(make: Callable[[], Compared], file: Path) -> None:
    """Write the page; as long as there is nothing to show, write one that reloads itself."""
    try:
        write_page(make(), file, refresh=_INTERVAL)
    except UserError:
        if not file.exists():
            file.write_text(_WAITING, encoding="utf-8")


def changes(study_runs: Path) -> Iterator[None]:
    """Yield at once, and whenever a curve, result or analysis below the folder has changed."""
    seen: object = None
    while True:
        now = _modification_times(study_runs)
        started = time.monotonic()
        if now != seen:
            seen = now
            yield
        time.sleep(max(_INTERVAL, _PAUSE * (time.monotonic() - started)))


def _modification_times(study_runs: Path) -> dict[Path, int]:
    """Return when each curve, result and analysis below the folder was written; files that vanish are skipped."""
    found = {}
    for name in ("metrics.csv", "result.json", "analysis.json"):
        for file in study_runs.glob(f"*/*/{name}"):
            with suppress(FileNotFoundError):
                found[file] = file.stat().st_mtime_ns
    return found


class _Quiet(SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        """Answer only requests for this machine's own host names, against DNS rebinding by other sites."""
        assert isinstance(self.server, ThreadingHTTPServer)
        port = self.server.server_port
        if self.headers.get("Host") not in {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, f"This page is at http://127.0.0.1:{port}/ alone")
            return None
        return super().send_head()

    def log_message(self, format: str, *values: Any) -> None:
        """Log nothing, because the page asks every two seconds."""
