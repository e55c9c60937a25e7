import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from etude.data.download import download
from etude.errors import UserError

CONTENT = bytes(range(256)) * 2000
SUM = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT as /file; everything else is missing."""

    content = CONTENT
    ranges = True
    breaks_after: int | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/file"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.headers["Range"])
        if self.path != "/file":
            return self.send_error(404)
        start = 0
        if self.server.ranges and self.headers["Range"]:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if start >= len(self.server.content):
                self.send_response(416)
                self.send_header("Content-Length", "0")
                return self.end_headers()
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.breaks_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def kept(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.suffix != ".lock")


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    download(server.url, path, SUM)
    download(server.url, path, SUM)
    assert path.read_bytes() == CONTENT
    assert kept(path.parent) == ["file"]
    assert server.requests == [None]


def test_many_who_ask_at_once_fetch_once(server: Server, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: download(server.url, tmp_path / "file", SUM), range(4)))
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert len(server.requests) == 1


@pytest.mark.parametrize("ranges", [True, False], ids=["server resumes", "server starts over"])
def test_a_broken_download_goes_on_from_where_it_stopped(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.ranges, server.breaks_after = ranges, 100_000
    with pytest.raises(UserError, match=r"broke off .*start again"):
        download(server.url, tmp_path / "file", SUM)
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:100_000]
    server.breaks_after = None
    download(server.url, tmp_path / "file", SUM)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert kept(tmp_path) == ["file"]
    assert server.requests == [None, "bytes=100000-"]


def test_wrong_content_is_not_kept_and_both_sums_are_shown(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT + b"more"
    got = hashlib.sha256(server.content).hexdigest()
    with pytest.raises(UserError, match=rf"{server.url} .*expected SHA-256 {SUM}, got {got}"):
        download(server.url, tmp_path / "file", SUM)
    assert kept(tmp_path) == []


def test_a_part_of_something_else_costs_one_failure_and_no_more(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(b"something else")
    with pytest.raises(UserError, match="SHA-256"):
        download(server.url, tmp_path / "file", SUM)
    download(server.url, tmp_path / "file", SUM)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_damaged_file_is_fetched_anew(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT[:-1])
    download(server.url, tmp_path / "file", SUM)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_without_a_checksum_what_has_come_whole_is_taken_and_kept(server: Server, tmp_path: Path) -> None:
    server.breaks_after = 100_000
    with pytest.raises(UserError, match=r"broke off"):
        download(server.url, tmp_path / "file", None)
    server.breaks_after = None
    for _ in range(2):
        download(server.url, tmp_path / "file", None)
        assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.requests == [None, "bytes=100000-"]


@pytest.mark.parametrize("sum", [SUM, None])
@pytest.mark.parametrize("part", [CONTENT, CONTENT + b"more"], ids=["whole", "of something longer"])
def test_a_part_that_the_server_cannot_add_to_is_fetched_anew(
    server: Server, tmp_path: Path, sum: str | None, part: bytes
) -> None:
    (tmp_path / "file.part").write_bytes(part)
    download(server.url, tmp_path / "file", sum)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert kept(tmp_path) == ["file"]


def test_a_checksum_may_be_an_md5(server: Server, tmp_path: Path) -> None:
    right = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
    with pytest.raises(UserError, match=r"expected MD5 0000, got \w{32};"):
        download(server.url, tmp_path / "file", "md5:0000")
    download(server.url, tmp_path / "file", right)
    download(server.url, tmp_path / "file", right)
    assert len(server.requests) == 2


def test_a_missing_page_names_the_key(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"answers 404 .*check data\.url"):
        download(f"{server.url}s", tmp_path / "file", SUM)
    assert kept(tmp_path) == []


def test_without_a_network_the_way_to_go_on_offline_is_told(server: Server, tmp_path: Path) -> None:
    with Server() as closed:
        url = closed.url
    with pytest.raises(UserError, match=r"cannot reach .*put file and the other files .*data\.root=FOLDER"):
        download(url, tmp_path / "file", SUM)


def test_a_place_without_a_protocol_is_one_sentence_and_a_folder_is_one_to_fetch_from(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot reach example\.invalid/file .*unknown url type"):
        download("example.invalid/file", tmp_path / "file", SUM)
    (tmp_path / "there").write_bytes(CONTENT)
    download((tmp_path / "there").as_uri(), tmp_path / "file", SUM)
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk without space")
def test_a_full_disk_is_one_sentence(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.part").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"cannot write .*No space left"):
        download(server.url, tmp_path / "file", SUM)
    assert not (tmp_path / "file").exists()
