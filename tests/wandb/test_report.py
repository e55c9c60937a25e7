"""A report written to W&B, and runs read back: the real public API against a server that stands in for W&B's."""

import json
import math
import shlex
import shutil
import subprocess
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from etude.cli.main import main
from etude.errors import UserError
from etude.files import write_json
from etude.report import report, results
from etude.report.frame import as_json
from etude.report.render.wandb.fetch import fetch
from etude.store.run_dir import RunDir
from etude.store.wandb_id import logged_as
from etude.training.loggers import finish, record, wandb
from etude.training.metrics_writers import LoggerSink

from .conftest import HERE, standin

Logged = Callable[..., RunDir]
wandb_workspaces = pytest.mark.skipif(
    find_spec("wandb_workspaces") is None, reason="needs wandb-workspaces: pip install 'etude[wandb-report]'"
)


@pytest.fixture(autouse=True)
def answering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The `server` of these tests answers the public API too, and what they write lies in a folder of their own."""
    monkeypatch.setenv("STANDIN_BEHIND", standin())
    monkeypatch.setenv("ETUDE_WANDB_STANDIN", str(HERE / "answering.py"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def logged(run: RunDir, tmp_path: Path) -> Logged:
    """A run of Table 3 that has ended and was logged."""
    frozen = run.config()

    def log(
        arm: str, id: str, mode: Any = "online", *, seed: int = 1, bleu: float = 31.5, ppl: float = 8.25, **more: Any
    ) -> RunDir:
        there = RunDir(tmp_path / "runs" / "table3" / arm / f"seed{seed}-{id}")
        there.path.mkdir(parents=True)
        config = frozen | {"arm": arm, "seed": seed} | more
        there.config_file.write_text(yaml.safe_dump(config))
        there.overrides_file.write_text("")
        write_json(there.environment_file, {"python": "3.12.1", "results_version": 1})
        for file in (there.sources_file, there.references_file, there.hypotheses_file):
            file.write_text("ein Hund\n")
        test = {"perplexity": ppl, "tokens": 5, "bleu": bleu, "signature": "nrefs:1", "sentences": 1}
        figures = {
            "parameters": 350_464,
            "steps": 20,
            "tokens": 1980,
            "flops": 1.5e9,
            "seconds": 2.5,
            "results_version": 1,
        }
        result = {"id": id, "valid": {"perplexity": 7.5}, "test": test, "store": "s0", **figures}
        there.write_result(result)
        loggers = wandb(there, config, mode=mode, project="etude", entity=None)
        row = {"step": 10, "tokens": 990, "seconds": 1.5, "valid_loss": 2.25, "valid_perplexity": 9.5}
        LoggerSink(loggers[0]).write(row)
        record(loggers, there, result)
        finish(loggers, exit_code=0)
        return there

    return log


def typed(*words: str) -> int:
    """The exit status of a command line."""
    with pytest.raises(SystemExit) as end:
        main(words)
    return int(str(end.value.code))


def reports(server: Any) -> dict[str, Any]:
    """Those that the server has."""
    found: dict[str, Any] = json.load(urlopen(f"{server.url}/_received"))["sweeps"]
    return found


def test_what_is_left_out_of_the_runs_read_back_is_told(
    server: Any, logged: Logged, run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    first = logged_as(logged("base", "aaaaaaaaaa"))
    again = logged_as(logged("base", "cccccccccc"))  # as an agent of W&B makes of a finished run
    new = logged_as(logged("new", "dddddddddd"))
    finish(wandb(run, run.config(), mode="online", project="etude", entity=None), exit_code=1)
    capsys.readouterr()
    assert typed("results", "table3", "--from", "wandb:etude", "--json", "-") == 0
    told = capsys.readouterr()
    assert [row["id"] for row in json.loads(told.out)] == ["cccccccccc"]
    assert "Left out: A1, seed 2: failed, as W&B says." in told.err
    assert f"Left out: me/etude/{first}, the same run as me/etude/{again}." in told.err
    assert f"Left out: me/etude/{new}, for the study has no arm new." in told.err
    assert "Not run: A2, A3" in told.err


def test_runs_read_back_are_as_those_that_lie_here_and_settings_are_not_mixed(
    server: Any, logged: Logged, run: RunDir
) -> None:
    choices = run.config()["choices"]
    paths = [logged_as(logged("base", "aaaaaaaaaa")), logged_as(logged("A1", "bbbbbbbbbb", bleu=0.0, ppl=math.inf))]
    there, here = fetch("table3", "me/etude").frame(), results("table3").frame()
    assert [*there.path] == [f"me/etude/{path}" for path in paths]
    of_this_disk = ["path", "text"]
    assert as_json(there.drop(columns=of_this_disk)) == as_json(here.drop(columns=of_this_disk))
    logged("base", "eeeeeeeeee", choices=choices | {"scale": "small"})
    logged("base", "ffffffffff", overrides=["precision=64-true"], precision="64-true")

    def ids(**where: str) -> list[str]:
        return [*fetch("table3", "etude", where).frame().id]

    assert ids() == ids(scale="pocket") == ["aaaaaaaaaa", "bbbbbbbbbb"]
    assert ids(scale="small") == ["eeeeeeeeee"]
    assert ids(precision="64-true") == ["ffffffffff"]


def test_a_project_with_nothing_to_read_is_told(server: Any) -> None:
    for project, told in {
        "nowhere": "W&B has no project me/nowhere",
        "etude": "W&B has no finished run of table3 in me/etude",
        "me/etude/x": "say ENTITY/PROJECT",
    }.items():
        with pytest.raises(UserError, match=told):
            fetch("table3", project)


@pytest.mark.slow
def test_an_outage_is_one_sentence_and_leaves_a_run_of_the_notebooks_alone(
    server: Any, run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    own = import_module("wandb").init(mode="offline", dir=run.path)
    server.outage(600)
    capsys.readouterr()
    assert typed("results", "table3", "--from", "wandb:me/etude") == 2
    assert capsys.readouterr().err.startswith("etude: W&B cannot be reached")
    own.log({"loss": 1.0})
    own.finish()


@wandb_workspaces
def test_a_report_holds_the_table_and_plots_of_its_runs_and_is_brought_up_to_date(
    server: Any, logged: Logged, run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everything that it plots is something that runs log."""
    shutil.rmtree(run.path)  # which has only begun, and logged nothing
    base = logged_as(logged("base", "aaaaaaaaaa"))
    for id in ("bbbbbbbbbb", "cccccccccc"):
        logged("A1", id, seed=1 if id < "c" else 2)
        capsys.readouterr()
        assert typed("report", "table3", "--wandb", "etude") == 0
        url = capsys.readouterr().out
        assert url.startswith(f"{server.url}/me/etude/reports/Table-3")
    [(name, sent)] = reports(server).items()
    assert url.strip().endswith(name)
    assert (sent["entityName"], sent["projectName"]) == ("me", "etude")
    blocks = json.loads(sent["spec"])["blocks"]
    [table] = [block["content"] for block in blocks if block["type"] == "markdown-block"]
    assert table == report("table3", Path("runs"), {}).markdown()
    grids = [block["metadata"] for block in blocks if block["type"] == "panel-grid"]
    for grid in grids:
        [shown] = grid["runSets"]
        [chosen] = shown["filters"]["filters"]
        assert (chosen["key"]["name"], chosen["op"]) == ("name", "IN")
        assert chosen["value"] == sorted(server.runs())
        assert shown["grouping"] == [{"section": "run", "name": "jobType"}]
    panels = [panel for grid in grids for panel in grid["panelBankSectionConfig"]["panels"]]
    by_type: dict[str, set[str]] = {}
    for panel in panels:
        axes = [panel["config"].get(axis) for axis in ("xAxis", "yAxis")]
        by_type.setdefault(panel["viewType"], set()).update(filter(None, [*panel["config"].get("metrics", []), *axes]))
    known = server.run(base)
    assert len(by_type["Run History Line Plot"]) == 6
    assert by_type["Run History Line Plot"] <= {key for row in known["history"] for key in row}
    assert by_type["Bar Chart"] == {"test/bleu"}
    plotted = {axis.removeprefix("summary:") for axis in by_type["Scatter Plot"]}
    assert {"flops", "seconds", "parameters", "test/bleu"} == plotted
    assert plotted <= known["summary"].keys()


@wandb_workspaces
def test_a_report_of_offline_runs_says_what_sends_them(
    server: Any, logged: Logged, run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(run.path)  # which has only begun, and logged nothing
    ids = [logged_as(logged("base", "aaaaaaaaaa", mode="offline")), logged_as(logged("A1", "bbbbbbbbbb"))]
    capsys.readouterr()
    assert typed("report", "table3", "--wandb", "me/etude") == 0
    _, told, line = capsys.readouterr().out.splitlines()
    assert told == "The plots lack 1 of 2 runs, which were logged offline; this sends them:"
    subprocess.run(line, shell=True, check=True, capture_output=True, timeout=60)
    assert sorted(server.runs()) == ids
    assert typed("report", "table3", "--wandb", "me/etude") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.slow
@wandb_workspaces
def test_a_report_that_cannot_be_sent_is_kept_with_the_line_that_sends_it(
    server: Any, logged: Logged, capsys: pytest.CaptureFixture[str]
) -> None:
    logged("base", "aaaaaaaaaa")
    server.outage(60)
    capsys.readouterr()
    assert typed("report", "table3", "scale=pocket", "--wandb", "etude") == 0
    why, kept = capsys.readouterr().out.splitlines()
    assert why.startswith("W&B cannot be reached")
    assert "The report is kept in runs/table3/wandb-report.json" in kept
    assert "aaaaaaaaaa" in Path("runs/table3/wandb-report.json").read_text()
    assert reports(server) == {}
    server.outage(0)
    program, *words = shlex.split(kept.partition("this sends it later: ")[2])
    assert program == "etude"
    assert typed(*words) == 0
    assert len(reports(server)) == 1
