"""What is kept of a report where W&B cannot be asked; what is sent is tested in `tests/wandb`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.report import main as report
from etude.cli.results import main as results
from etude.errors import UserError
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")


@pytest.fixture
def workspaces() -> None:
    pytest.importorskip("wandb_workspaces", reason="needs wandb-workspaces: pip install 'etude[wandb-report]'")


@pytest.mark.usefixtures("workspaces")
def test_offline_the_report_is_kept_and_the_table_is_not_printed(
    runs_dir: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base")
    report(["heads", "scale=pocket", "--wandb", "me/etude"])
    assert capsys.readouterr().out.splitlines() == [
        "WANDB_MODE=offline keeps everything on this machine.",
        "The report is kept in runs/heads/wandb-report.json; this sends it later: "
        "etude report heads scale=pocket runs_dir=runs --wandb me/etude",
    ]
    kept = json.loads((runs_dir / "heads" / "wandb-report.json").read_text())
    assert kept["displayName"] == "Heads and positions"
    assert kept["project"] == {"entityName": "me", "name": "etude"}


@pytest.mark.usefixtures("workspaces")
def test_the_line_that_sends_it_later_asks_for_the_same_baseline(
    make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base")
    make_run("A1")
    report(["heads", "--baseline", "A1", "--wandb", "me/etude"])
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .endswith("etude report heads runs_dir=runs --baseline A1 --wandb me/etude")
    )


@pytest.mark.usefixtures("workspaces")
@pytest.mark.parametrize(
    ("setting", "project", "id"),
    [
        ("pocket", "me/etude", "seen"),
        ("pocket", "etude", "seen"),
        ("small", "me/etude", ""),
        ("pocket", "me/other", ""),
    ],
)
def test_a_report_goes_on_with_the_one_of_its_own_project_and_setting(
    runs_dir: Path, make_run: Make, setting: str, project: str, id: str
) -> None:
    file = runs_dir / "heads" / "wandb-report.json"
    make_run("base")
    make_run("base", scale="small")
    report(["heads", "scale=pocket", "--wandb", "me/etude"])
    file.write_text(json.dumps(json.loads(file.read_text()) | {"id": "seen"}))
    report(["heads", f"scale={setting}", "--wandb", project])
    other = file.with_name("wandb-report-2.json")
    assert json.loads((other if other.exists() else file).read_text())["id"] == id
    report(["heads", "scale=pocket", "--wandb", "me/etude"])
    assert json.loads(file.read_text())["id"] == "seen", "the first goes on, whatever came between"


@pytest.mark.usefixtures("workspaces")
def test_a_run_is_named_as_the_agent_of_wandb_that_logged_it_named_it(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    rows = make_run("A1").path / "wandb" / "agent007.rows"
    rows.parent.mkdir()
    rows.touch()
    own = make_run("A2").path.name.rpartition("-")[2]
    report(["heads", "--wandb", "me/etude"])
    kept = (runs_dir / "heads" / "wandb-report.json").read_text()
    assert "agent007" in kept
    assert own in kept


def test_without_wandb_workspaces_the_way_out_is_told(
    runs_dir: Path, make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run("base")
    for module in ("wandb_workspaces", "wandb_workspaces.reports"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r"--wandb needs wandb-workspaces: pip install 'etude\[wandb-report\]'"):
        report(["heads", "--wandb", "etude"])


def test_runs_cannot_be_read_back_offline(runs_dir: Path) -> None:
    with pytest.raises(UserError, match="WANDB_MODE=offline"):
        results(["heads", "--from", "wandb:etude"])


def test_a_project_must_be_named(runs_dir: Path) -> None:
    with pytest.raises(UserError, match="--wandb needs PROJECT: "):
        report(["heads", "--wandb"])
