"""Serve the page of a study on this machine, and update it while its runs go on."""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from html import escape
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.files import write_text
from etude.report.comparison import Compared
from etude.report.render.html.document import write_page

_INTERVAL = 2.0  # seconds between two checks for changes, by the server and by the page
_PAUSE = 4  # wait this many times as long as writing the page took, to leave the processor to the runs
_WAITING = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>étude</title>'


def serve(make: Callable[[], Compared], study_runs: Path, port: int) -> None:
    """Serve the page of what `make` returns until Ctrl-C, on this machine only, and update it when `study_runs` change.

    Raises:
        UserError: the port is taken; 0 takes a free one.
    """
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "index.html"
        page.write_text(f"{_WAITING}<p>The page is being made.</p>", encoding="utf-8")
        with serve_folder(Path(folder), port) as address:
            print(f"{address}  (Ctrl-C ends it)", flush=True)
            told = ""
            try:
                for _ in changes(study_runs):
                    if (why := write_again(make, page)) not in ("", told):
                        print(why, file=sys.stderr, flush=True)
                    told = why
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


def write_again(make: Callable[[], Compared], file: Path) -> str:
    """Write the page; as long as there is nothing to show, write one that says why and reloads itself.

    Returns:
        Why there is nothing to show; empty if there is. A page that was written before stays.
    """
    try:
        write_page(make(), file, refresh=_INTERVAL)
    except UserError as error:
        if not file.exists() or file.read_text(encoding="utf-8").startswith(_WAITING):
            why = f"<p>{escape(str(error))}</p><p>This page fills in when there is something to show.</p>"
            write_text(file, _WAITING + why)
        return str(error)
    return ""


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
