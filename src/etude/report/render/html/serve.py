"""The page of a study on a small server of this machine, written anew while its runs go on."""

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

_ASKING = 2.0  # seconds between two looks at the runs, and between two questions of the page
_SHARE = 4  # the page takes at most a fifth of the time to write; the runs want the processor too
_WAITING = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>étude</title>'
    "<p>No run is finished yet. This page fills in when one is.</p>"
)


def serve(make: Callable[[], Compared], study_runs: Path, port: int) -> None:
    """Serve the page of what `make` gives until Ctrl-C, on this machine alone, while `study_runs` are watched.

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
    """Serve a folder meanwhile, under the address that is yielded.

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
    """Write the page, or while there is nothing to show, one that waits."""
    try:
        write_page(make(), file, refresh=_ASKING)
    except UserError:
        if not file.exists():
            file.write_text(_WAITING, encoding="utf-8")


def changes(study_runs: Path) -> Iterator[None]:
    """Yields at once, and whenever a curve or a result below the folder has changed."""
    seen: object = None
    while True:
        now = _modification_times(study_runs)
        started = time.monotonic()
        if now != seen:
            seen = now
            yield
        time.sleep(max(_ASKING, _SHARE * (time.monotonic() - started)))


def _modification_times(study_runs: Path) -> dict[Path, int]:
    """When each curve and result below the folder was written; without one that is being put aside just now."""
    found = {}
    for name in ("metrics.csv", "result.json", "analysis.json"):
        for file in study_runs.glob(f"*/*/{name}"):
            with suppress(FileNotFoundError):
                found[file] = file.stat().st_mtime_ns
    return found


class _Quiet(SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        """What is asked for, under this machine's own names alone: any site may point a name of its own here."""
        assert isinstance(self.server, ThreadingHTTPServer)
        port = self.server.server_port
        if self.headers.get("Host") not in {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, f"This page is at http://127.0.0.1:{port}/ alone")
            return None
        return super().send_head()

    def log_message(self, format: str, *values: Any) -> None:
        """Nothing: the page asks every other second."""
