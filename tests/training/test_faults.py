"""Faults while a run is trained: a disk that takes nothing more, damaged files, a clock that is set."""

import builtins
import errno
import io
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.config.explain import explain
from etude.errors import UserError
from etude.logs import logging_to
from etude.store.records import read_rows
from etude.store.run_dir import RunDir
from etude.store.run_state import State
from etude.training.run import train

from .conftest import TIMES, Freeze, found

WRITTEN = [
    *("environment.json", "tokenizer.model", "metrics.csv", "progress.json", "last.ckpt"),
    *("sources.test.txt", "references.test.txt", "hypotheses.test.txt", "result.json"),
]
READ = [*WRITTEN[:5], "text.txt", "training.txt", "overrides.txt", "result.json"]


@pytest.fixture(scope="module")
def undisturbed(runs: Freeze) -> RunDir:
    """The same run with nothing in its way."""
    run = runs("undisturbed")
    train(run)
    return run


def refusing(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on files of that name, temporary ones too, cannot be opened for writing."""
    really = io.open

    def refuse(file: Any, mode: str = "r", *rest: Any, **how: Any) -> Any:
        if name in Path(str(file)).name and set(mode) & set("wax+"):
            raise OSError(number, os.strerror(number), str(file))
        return really(file, mode, *rest, **how)

    monkeypatch.setattr(io, "open", refuse)
    monkeypatch.setattr(builtins, "open", refuse)


@pytest.mark.parametrize(("name", "number"), [*((name, errno.ENOSPC) for name in WRITTEN), ("last.ckpt", errno.EROFS)])
def test_a_disk_that_takes_a_file_no_more_is_told_and_the_run_goes_on_later(
    name: str, number: int, runs: Freeze, undisturbed: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs(f"{name}-{number}")
    with monkeypatch.context() as patch:
        refusing(name, number, patch)
        with pytest.raises(UserError, match=rf"cannot write .*{name}.*: {os.strerror(number)}; "):
            train(run)
    assert not run.finished
    assert not [*run.runs_dir.rglob("*.part")]
    train(run)
    assert found(run) == found(undisturbed)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_on_a_full_disk_costs_its_lines_and_no_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    logging_to(Path("/dev/full"))
    logging.getLogger("etude").info("step 3")
    told = capsys.readouterr().err
    assert "step 3" in told
    assert "Traceback" not in told


@pytest.fixture(scope="module")
def stopped(runs: Freeze) -> RunDir:
    """A run that was stopped before its result was written."""
    run = runs("stopped")
    with pytest.MonkeyPatch.context() as patch:
        refusing("result.json", errno.ENOSPC, patch)
        with pytest.raises(UserError):
            train(run)
    return run


DAMAGES: dict[str, Callable[[bytes, float], bytes]] = {
    "cut short": lambda content, place: content[: int(len(content) * place)],
    "emptied": lambda content, place: b"",
    "zeros": lambda content, place: bytes(len(content)),
    "a byte flipped": lambda content, place: flipped(content, int((len(content) - 1) * place)),
}


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1 :]


@pytest.mark.parametrize("name", ["tokenizer.model", "progress.json", "last.ckpt"])
@settings(max_examples=3, deadline=None)
@given(damage=st.sampled_from([*DAMAGES]), place=st.floats(0, 1))
@example(damage="a byte flipped", place=0.9995394750340485)  # in the end record: Python reads the archive, PyTorch not
def test_whatever_is_damaged_in_a_stopped_run_it_ends_with_the_same_result(
    name: str, damage: str, place: float, stopped: RunDir, undisturbed: RunDir, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = copy(stopped, tmp_path_factory)
    [file] = [*run.own_training.path.rglob(name)] or [*run.path.rglob(name)]
    file.write_bytes(DAMAGES[damage](file.read_bytes(), place))
    train(run)
    assert found(run) == found(undisturbed)


@settings(max_examples=4, deadline=None)
@given(damage=st.sampled_from([*DAMAGES]), place=st.floats(0, 1))
def test_where_it_is_unknown_which_code_began_a_run_its_result_says_so_and_is_the_same(
    damage: str, place: float, stopped: RunDir, undisturbed: RunDir, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = copy(stopped, tmp_path_factory)
    run.environment_file.write_bytes(DAMAGES[damage](run.environment_file.read_bytes(), place))
    train(run)
    result, straight = found(run)["result"], found(undisturbed)["result"]
    assert result["results_version"] in (straight["results_version"], [None, straight["results_version"]])
    provenance = {"results_version": None, "own_files": None, "libraries": None}
    assert result | provenance == straight | provenance


@settings(max_examples=3, deadline=None)
@given(damage=st.sampled_from([*DAMAGES]), place=st.floats(0, 1))
def test_damaged_curves_lose_rows_and_no_result(
    damage: str, place: float, stopped: RunDir, undisturbed: RunDir, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = copy(stopped, tmp_path_factory)
    run.metrics_file.write_bytes(DAMAGES[damage](run.metrics_file.read_bytes(), place))
    train(run)
    assert found(run) | {"metrics": []} == found(undisturbed) | {"metrics": []}


@pytest.mark.parametrize("name", [*READ, "config.yaml", "log.txt", ".lock"])
def test_a_folder_in_the_place_of_a_file_is_told(
    name: str, stopped: RunDir, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """By whoever reads it, or where nobody does, not at all; and the table of runs leaves it out or shows it."""
    run = copy(stopped, tmp_path_factory)
    file = next(run.own_training.path.rglob(name), run.path / name)
    file.unlink(missing_ok=True)
    file.mkdir()
    told = None
    try:
        train(run)
    except Exception as error:
        told = explain(error)
        if told is None:
            raise
    assert name in str(told) if told else run.finished
    read_rows(run.runs_dir / "single")


def test_a_stopped_run_is_shown_from_a_disk_that_is_only_read(stopped: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (errno.EROFS, errno.EACCES):
        refusing("", number, monkeypatch)
        [run], notes = read_rows(stopped.path.parent.parent)
        assert (run.state, notes) == (State.WAITING, [])  # it has no log to be stopped in


@pytest.mark.parametrize("damage", ["gone", "a folder"])
def test_a_finished_run_without_its_config_is_told(
    damage: str, undisturbed: RunDir, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = copy(undisturbed, tmp_path_factory)
    run.config_file.unlink()
    if damage == "a folder":
        run.config_file.mkdir()
    with pytest.raises(UserError, match=r"has no config\.yaml: delete the directory and train again"):
        run.config()


def copy(run: RunDir, tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """The same run and its training in a folder of their own."""
    place = tmp_path_factory.mktemp("copy") / "runs"
    shutil.copytree(run.runs_dir, place, symlinks=True)
    return RunDir(place.joinpath(*run.path.parts[-3:]))


@pytest.mark.parametrize("jump", [-1.0, 1.0], ids=["back", "ahead"])
def test_a_clock_that_is_set_meanwhile_changes_no_figure_and_loses_no_lock(
    jump: float, runs: Freeze, undisturbed: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a year whenever somebody looks."""
    year, looked, really = 365 * 24 * 3600.0, [0], time.time

    def jumping() -> float:
        looked[0] += 1
        return really() + jump * year * looked[0]

    run = runs(f"clock-{jump}")
    monkeypatch.setattr(time, "time", jumping)
    result = train(run)
    assert found(run) == found(undisturbed)
    assert 0 <= result["seconds"] < 60
    rows = [dict(zip(*pair, strict=True)) for pair in rows_of(run)]
    assert all(float(row[name] or 0) >= 0 for row in rows for name in TIMES if name in row)


def rows_of(run: RunDir) -> list[tuple[list[str], list[str]]]:
    """Of the curves, each with their header."""
    header, *rows = (line.split(",") for line in run.metrics_file.read_text().splitlines())
    return [(header, row) for row in rows]
