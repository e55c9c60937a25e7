"""Serve pages on this machine, and update them while runs go on: of one study or search, or an index of all."""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from html import escape
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from etude.errors import UserError
from etude.files import write_text
from etude.report.live import INTERVAL, index_page, page_of
from etude.report.overview import Overview
from etude.store.records import leaving_out, read_run
from etude.store.run_dir import RunDir
from etude.store.run_state import State

_ASKED = 30.0  # seconds; a page that nobody has asked for since is not made again
_PAUSE = 4  # wait this many times as long as writing the page took, to leave the processor to the runs
_WAITING = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>étude</title>'


def serve(make: Callable[[], str], study_runs: Path, port: int) -> None:
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


def serve_all(runs_dir: Path, port: int) -> None:
    """Serve an index of all studies and searches in a folder of runs until Ctrl-C, and the page of each that is open.

    Raises:
        UserError: the port is taken; 0 takes a free one.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder, overview, seen = Path(temporary), Overview(runs_dir), dict[str, object]()
        update(folder, overview, seen, {})
        with serve_folder(folder, port) as address:
            print(f"{address}  (Ctrl-C ends it)", flush=True)
            with suppress(KeyboardInterrupt):
                while True:
                    started = time.monotonic()
                    update(folder, overview, seen, _Quiet.asked)
                    time.sleep(max(INTERVAL, _PAUSE * (time.monotonic() - started)))
            print()


def update(folder: Path, overview: Overview, seen: dict[str, object], asked: Mapping[str, float]) -> None:
    """Write the index if anything has changed, and each page that was asked for lately and is no longer what it was.

    Args:
        folder: the folder of the pages.
        overview: reads what there is.
        seen: what each page was made of, which is updated.
        asked: the name of each page that was asked for -> when, by the monotonic clock.
    """
    entries = overview.entries()
    if seen.get("index.html") != entries:
        seen["index.html"] = entries
        write_text(folder / "index.html", index_page(overview.runs_dir, entries))
    for entry in entries:
        file = folder / entry.page
        if not file.exists():
            write_text(file, f"{_WAITING}<p>The page is being made.</p>")
        now = entry, _modification_times(overview.runs_dir / entry.study)
        if time.monotonic() - asked.get(entry.page, -_ASKED) < _ASKED and seen.get(entry.page) != now:
            seen[entry.page] = now
            write_again(partial(page_of, overview.runs_dir, entry), file)


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


def write_again(make: Callable[[], str], file: Path) -> str:
    """Write the page; as long as there is nothing to show, write one that says why and reloads itself.

    Returns:
        Why there is nothing to show; empty if there is. A page that was written before stays.
    """
    try:
        write_text(file, make())
    except UserError as error:
        if not file.exists() or file.read_text(encoding="utf-8").startswith(_WAITING):
            why = f"<p>{escape(str(error))}</p><p>This page fills in when there is something to show.</p>"
            write_text(file, _WAITING + why)
        return str(error)
    return ""


def changes(study_runs: Path) -> Iterator[None]:
    """Yield at once, and whenever a curve, the progress, a result, an analysis, a search or a state has changed."""
    seen: object = None
    while True:
        started = time.monotonic()
        now = _modification_times(study_runs), _states(study_runs)
        if now != seen:
            seen = now
            yield
        time.sleep(max(INTERVAL, _PAUSE * (time.monotonic() - started)))


def _states(study_runs: Path) -> dict[Path, State]:
    """Return the state of each run without a result: one that was killed writes nothing more."""
    begun = (path for path in study_runs.glob("*/seed*/") if not RunDir(path).finished)
    found = {}
    for path in begun:
        with leaving_out(path, []):
            found[path] = read_run(RunDir(path)).state
    return found


def _modification_times(study_runs: Path) -> dict[Path, int]:
    """Return when what a page shows of the runs below the folder was written; files that vanish are skipped."""
    found = {}
    for name in ("*/*/metrics.csv", "*/*/progress.json", "*/*/result.json", "*/*/analysis.json", "*.journal"):
        for file in study_runs.glob(name):
            with suppress(FileNotFoundError):
                found[file] = file.stat().st_mtime_ns
    return found


class _Quiet(SimpleHTTPRequestHandler):
    asked: ClassVar[dict[str, float]] = {}  # the name of a page -> when it was last asked for

    def send_head(self) -> Any:
        """Answer only requests for this machine's own host names, against DNS rebinding by other sites."""
        assert isinstance(self.server, ThreadingHTTPServer)
        port = self.server.server_port
        if self.headers.get("Host") not in {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, f"This page is at http://127.0.0.1:{port}/ alone")
            return None
        self.asked[unquote(self.path.lstrip("/"))] = time.monotonic()
        del self.headers["If-Modified-Since"]  # whose whole seconds hide that a page was written again within one
        return super().send_head()

    def log_message(self, format: str, *values: Any) -> None:
        """Log nothing, because the page asks every two seconds."""
