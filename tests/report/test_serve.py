"""The page on a small server, written anew while runs go on."""

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import pytest

from etude.cli.report import main as report
from etude.errors import UserError
from etude.files import write_json
from etude.report import serve as serving
from etude.report.live import index_page, study_page
from etude.report.overview import Entry, Overview
from etude.report.serve import changes, serve_folder, update, write_again
from etude.store.lock import hold
from etude.store.run_dir import RunDir
from etude.store.run_state import State


def test_the_page_is_served_to_this_machine_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("a page")
    with serve_folder(tmp_path, 0) as address:
        assert address.startswith("http://127.0.0.1:")
        assert urlopen(address).read() == b"a page"


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}"])
def test_this_machine_has_three_names(tmp_path: Path, host: str) -> None:
    (tmp_path / "index.html").write_text("a page")
    assert asked_as(tmp_path, host) == (200, "a page")


@pytest.mark.parametrize("host", ["evil.example:{port}", "localhost", "localhost:1", "127.0.0.1.evil.example:{port}"])
def test_a_name_that_somebody_pointed_at_this_machine_is_refused(tmp_path: Path, host: str) -> None:
    (tmp_path / "index.html").write_text("a page")
    status, body = asked_as(tmp_path, host)
    assert status == 421
    assert "This page is at http://127.0.0.1:" in body
    assert "a page" not in body


def asked_as(folder: Path, host: str) -> tuple[int, str]:
    """Status and body for a request that names `host`."""
    with serve_folder(folder, 0) as address:
        port = int(address.rstrip("/").rpartition(":")[2])
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/", headers={"Host": host.format(port=port)})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with serve_folder(tmp_path, 0) as address:
        port = int(address.rstrip("/").rpartition(":")[2])
        with pytest.raises(UserError, match=rf"--serve={port}: .* say --serve"), serve_folder(tmp_path, port):
            pass


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--serve=99999"], "below 65536"),
        (["--serve=²"], "a port is a number"),
        (["--serve", "--latex", "t.tex"], "writes nothing: leave out --latex"),
        (["--serve", "runs_dir=nowhere"], "there is no folder nowhere"),
        (["tabel3", "--serve"], "there is no study 'tabel3'"),
        (["sweeps/search.yaml", "--serve", "runs_dir=nowhere"], "has no search to show"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(words: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        report(words)


def test_a_change_of_a_curve_or_a_result_is_seen_and_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "base" / "seed1-0"
    run.mkdir(parents=True)
    (run / "metrics.csv").write_text("step\n")
    rounds: list[str] = []

    def sleep(seconds: float) -> None:
        rounds.append("looked")
        if len(rounds) == 2:
            os.utime(run / "metrics.csv", ns=(1, 1))
        if len(rounds) == 3:
            (run / "log.txt").write_text("of no interest")
        if len(rounds) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(serving.time, "sleep", sleep)
    seen = []
    with suppress(KeyboardInterrupt):
        for _ in changes(tmp_path):
            seen.append(len(rounds))
    assert seen == [0, 2]


def test_a_run_that_was_killed_is_seen_though_it_writes_nothing(
    make_run: Callable[..., RunDir], runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rounds = make_run("base", finished=False), []
    held = hold(run.lock_file, run.busy)
    held.__enter__()

    def sleep(seconds: float) -> None:
        rounds.append("looked")
        if len(rounds) == 2:
            held.__exit__(None, None, None)
        if len(rounds) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(serving.time, "sleep", sleep)
    seen = []
    with suppress(KeyboardInterrupt):
        for _ in changes(runs_dir / "heads"):
            seen.append(len(rounds))
    assert seen == [0, 2]


def test_the_index_has_every_study_with_the_states_of_its_runs_and_a_page_is_made_when_it_is_asked_for(
    make_run: Callable[..., RunDir], runs_dir: Path, tmp_path: Path
) -> None:
    make_run("base")
    make_run("A1", finished=False)
    folder, overview = tmp_path / "pages", Overview(runs_dir)
    folder.mkdir()
    update(folder, overview, seen := {}, {})
    index = (folder / "index.html").read_text()
    assert '<a href="heads/study.html">heads</a>' in index
    assert overview.entries()[0].states == {State.FINISHED: 1, State.WAITING: 1}
    assert "is being made" in (folder / "heads/study.html").read_text()
    update(folder, overview, seen, {"heads/study.html": time.monotonic()})
    page = (folder / "heads/study.html").read_text()
    assert "Heads and positions" in page
    assert "A1, seed 1" in page.partition("Runs under way")[2]
    before = (folder / "heads/study.html").stat().st_mtime_ns
    update(folder, overview, seen, {"heads/study.html": time.monotonic()})
    assert (folder / "heads/study.html").stat().st_mtime_ns == before, "nothing has changed"
    make_run("E1")
    update(folder, overview, seen, {"heads/study.html": time.monotonic() - 3600})
    assert (folder / "heads/study.html").stat().st_mtime_ns == before, "nobody has it open"


def test_before_a_run_is_finished_the_page_has_those_that_are_under_way(
    make_run: Callable[..., RunDir], runs_dir: Path
) -> None:
    run = make_run("A1", finished=False)
    write_json(run.progress_file, {"state": "training", "step": 40, "max_steps": 100})
    run.log_file.write_text("etude: the text is gone\n")
    page = study_page("heads", runs_dir)
    assert "No run is finished yet" in page
    assert "40 / 100" in page
    assert "the text is gone" in page
    with pytest.raises(UserError, match="there is no folder"):
        study_page("heads", runs_dir / "elsewhere")


def test_of_what_is_under_way_the_page_has_the_setting_that_is_asked_for(
    make_run: Callable[..., RunDir], runs_dir: Path
) -> None:
    for scale in ("pocket", "small"):
        make_run("base", scale=scale, finished=False)
    one, both = (study_page("heads", runs_dir, where) for where in ({"scale": "pocket"}, {}))
    assert 2 * one.count("base, seed 1") == both.count("base, seed 1")
    with pytest.raises(UserError, match="no run has scale=nowhere"):
        study_page("heads", runs_dir, {"scale": "nowhere"})
    make_run("A1", scale="base")
    assert "No run is finished yet" in study_page("heads", runs_dir, {"scale": "pocket"})


def test_runs_of_several_configs_are_no_one_curve(
    make_run: Callable[..., RunDir], runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    monkeypatch.setattr("etude.report.live.curves", lambda runs: drawn.append(len(runs)) or {})
    for seed, dropout in ((1, 0.1), (2, 0.9), (1, 0.9)):
        make_run("base", seed, finished=False, changed={"model": {"dropout": dropout}})
    study_page("heads", runs_dir)
    assert drawn == [2]


def test_a_run_that_is_trained_again_is_counted_as_running(make_run: Callable[..., RunDir], runs_dir: Path) -> None:
    run, overview = make_run("base"), Overview(runs_dir)
    assert overview.entries()[0].states == {State.FINISHED: 1}
    run.result_file.unlink()
    assert overview.entries()[0].states == {State.WAITING: 1}


def test_names_of_pages_do_not_clash(make_run: Callable[..., RunDir], runs_dir: Path) -> None:
    names = [Entry("index", "", Counter(), 0), Entry("a.b", "", Counter(), 0), Entry("a", "b", Counter(), 0)]
    pages = {"index.html", *(entry.page for entry in [*names, Entry("a", "study", Counter(), 0)])}
    assert len(pages) == 5
    assert 'href="a%23b/study.html"' in index_page(runs_dir, [Entry("a#b", "", Counter(), 0)])


def test_while_there_is_nothing_to_show_the_page_says_why_and_asks_again(tmp_path: Path) -> None:
    file = tmp_path / "index.html"

    def nothing_yet(why: str = "no finished run") -> None:
        raise UserError(why)

    assert write_again(nothing_yet, file) == "no finished run"  # type: ignore[arg-type]
    assert "no finished run" in file.read_text()
    assert 'http-equiv="refresh"' in file.read_text()
    write_again(lambda: nothing_yet("no arm 'a<b'"), file)  # type: ignore[arg-type, return-value]
    assert "no arm &#x27;a&lt;b&#x27;" in file.read_text(), "a page that waits says what for"
    before = file.stat().st_ino
    write_again(nothing_yet, file)  # type: ignore[arg-type]
    assert file.stat().st_ino != before, "another file takes its place, so that nobody reads half of one"
    file.write_text("an older page")
    write_again(nothing_yet, file)  # type: ignore[arg-type]
    assert file.read_text() == "an older page", "what was shown is not taken away"
