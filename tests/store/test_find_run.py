"""A run is found by every name that a person has for it, and by no name that could be another's."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from etude.errors import UserError
from etude.store.find_run import find_run

RUNS = ("table3/A1/seed1-0a1b2c3d4e", "table3/A1/seed2-0a9999999f", "mine/A1/seed1-0a1b2c3d4e", "mine/b/seed-3-77f0")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (*RUNS, "mine/A1/.stale/seed1-0a9999999f"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.yaml").touch()
    (tmp_path / "runs" / "table3" / "A1" / "seed1-0a1b2c3d4e.copy").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("which", "run"),
    [
        ("runs/table3/A1/seed1-0a1b2c3d4e", RUNS[0]),
        (Path("runs") / RUNS[0], RUNS[0]),
        (f"runs/{RUNS[0]}/training/checkpoints/last.ckpt", RUNS[0]),
        ("table3/A1/1", RUNS[0]),
        ("table3/A1/seed2", RUNS[1]),
        ("mine/b/-3", RUNS[3]),
        ("77f0", RUNS[3]),
        ("0a9", RUNS[1]),
        ("seed2-0a", RUNS[1]),
        ({"path": f"runs/{RUNS[1]}"}, RUNS[1]),
        (pd.Series({"arm": "A1", "path": f"runs/{RUNS[1]}"}), RUNS[1]),
        (SimpleNamespace(path=f"runs/{RUNS[1]}"), RUNS[1]),
    ],
    ids=str,
)
def test_every_name_of_a_run_leads_to_it(place: Path, which: object, run: str) -> None:
    assert find_run(which).path == Path("runs") / run  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ("0a1b2c", r"names 2 runs; say which: runs/mine/A1/seed1-0a1b2c3d4e, runs/table3/A1/seed1-0a1b2c3d4e"),
        ("table3/A1/3", r"table3/A1/3 is not .*; did you mean table3/A1/[12] or table3/A1/[12]\?"),
        ("beef", "`etude status` lists what runs holds"),
        ("../../secret", "is not the directory of a run"),
        ("table3", "is not the directory of a run"),
        ("runs/table3", r"it has no config.yaml; did you mean runs/table3/A1/seed1-0a1b2c3d4e\?"),
        ("", "names no run: give its directory, its hash, study/arm/seed"),
        (pd.Series({"arm": "A1"}), "Series without a path names no run"),
        (7, "int without a path"),
    ],
    ids=str,
)
def test_what_names_no_run_or_several_is_one_sentence(place: Path, which: object, told: str) -> None:
    with pytest.raises(UserError, match=told) as error:
        find_run(which)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_another_folder_of_runs_is_looked_through_alone(place: Path) -> None:
    (place / "runs").rename(place / "old")
    assert find_run("77f0", "old").path == Path("old") / RUNS[3]
    with pytest.raises(UserError, match="in runs;"):
        find_run("77f0")


def test_the_folder_of_runs_is_that_of_the_users_own_config(place: Path) -> None:
    (place / "runs").rename(place / "elsewhere")
    (place / "conf").mkdir()
    (place / "conf/train.yaml").write_text("runs_dir: elsewhere\n")
    assert find_run("77f0").path == Path("elsewhere") / RUNS[3]


def test_a_path_from_the_home_folder_is_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    assert find_run(f"~/runs/{RUNS[0]}").path == place / "runs" / RUNS[0]


def test_a_config_without_a_folder_of_runs_is_of_another_project(place: Path) -> None:
    (place / "conf").mkdir()
    (place / "conf/train.yaml").write_text("defaults: []\n")
    assert find_run("77f0").path == Path("runs") / RUNS[3]
