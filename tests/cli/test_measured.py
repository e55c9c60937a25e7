"""`etude sweep`, `plan`, `report` and `status` of a study that is measured."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from etude.cli import plan, report, results, status, sweep
from etude.cli.show import main as show
from etude.errors import UserError
from etude.runs.lock import Busy
from etude.runs.measurements import hold_measurements
from etude.studies.measured import load_measured

SMALL = ["n=4,8", "d=8,16", "k=3,5", "r=3,5", "repeats=1"]
NAMES = ["self_attention", "recurrent", "convolutional", "separable", "restricted"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder in which the layers have been measured."""
    folder = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        sweep.main(["table1", *SMALL])
    return folder


@pytest.fixture
def here(measured, monkeypatch):
    monkeypatch.chdir(measured)
    monkeypatch.delenv("COLUMNS", raising=False)
    return measured


def test_what_is_measured_is_measured_once(here, capsys):
    sweep.main(["table1", *SMALL])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [f"{name} is measured already" for name in NAMES]
    assert lines[5] == f"etude report table1 {' '.join(SMALL)}  shows what was found"


def test_two_processes_do_not_measure_the_same_study_at_once(here):
    study = load_measured("table1", SMALL)
    with hold_measurements(study, here / "runs"), pytest.raises(Busy, match=r"another process measures table1 .* wait"):
        sweep.main(["table1", *SMALL])


def test_the_report_tells_of_every_layer_within_the_width_of_a_page(here, capsys):
    report.main(["table1", *SMALL])
    text = capsys.readouterr().out
    assert all(re.search(rf"^{name} +O\(", text, re.MULTILINE) for name in NAMES)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_the_page_and_the_picture_are_written(here, capsys, tmp_path):
    report.main(["table1", *SMALL, "--html", str(tmp_path / "t.html"), "--svg", str(tmp_path / "t.svg")])
    assert capsys.readouterr().out == f"{(tmp_path / 't.html').as_uri()}  open it in a browser\n"
    lines = ElementTree.parse(tmp_path / "t.svg").getroot().findall(".//{*}polyline")
    assert len(lines) == 3 * (5 + 5 + 3) + 5 + 5 + 3
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "Table 1, measured" in page
    assert f"Made by <code>etude report table1 {' '.join(SMALL)} --html t.html</code>" in page


def test_a_report_needs_no_torch(here):
    code = (
        "import sys; from etude.cli.report import main; "
        f"main(['table1', *{SMALL}]); main(['table1', *{SMALL}, '--html', '-']); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_plan_says_what_is_measured_and_what_would_be(here, capsys):
    plan.main(["table1", *SMALL])
    text = capsys.readouterr().out
    assert text.startswith("table1 is measured, not trained: 5 of 5 layers are.\n")
    assert "n = 4, 8; d = 8, 16; k = 3, 5; r = 3, 5" in " ".join(text.split())
    plan.main(["table1", *SMALL, "k=3,7"])
    said = f"3 of 5 layers are; `etude sweep table1 {' '.join(SMALL)} k=3,7` measures convolutional, separable."
    assert said in " ".join(capsys.readouterr().out.split())
    plan.main(["table1", *SMALL, "k=3,7", "--json"])
    told = {layer["layer"]: layer["measured"] for layer in json.loads(capsys.readouterr().out)["layers"]}
    assert told == {name: name not in ("convolutional", "separable") for name in NAMES}


def test_status_counts_the_layers_of_the_study_as_it_stands(here, capsys):
    for words in ([], ["table1"]):
        status.main(words)
        assert capsys.readouterr().out.startswith("table1 is measured, not trained: 0 of 5 layers are; `etude sweep")
    status.main(["--json"])
    [note] = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith("table1 is measured")


def test_with_nothing_measured_the_way_out_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = "runs holds no such measurement of table1; this makes it: etude sweep table1 n=4"
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        report.main(["table1", "n=4"])
    assert caught.value.exit_status == 2
    with pytest.raises(UserError, match=r"elsewhere holds no such .*: etude sweep table1 runs_dir=elsewhere"):
        report.main(["table1", "runs_dir=elsewhere"])


def test_runs_may_lie_elsewhere(here, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep.main(["table1", *SMALL, f"runs_dir={here}/runs"])
    assert capsys.readouterr().out.count("is measured already") == 5
    report.main(["table1", *SMALL, f"runs_dir={here}/runs"])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("option", ["--latex", "--markdown", "--wandb", "--baseline"])
def test_what_is_for_trained_studies_is_refused(here, option):
    with pytest.raises(UserError, match=f"{option} is for what is trained; of table1, which is measured, there is"):
        report.main(["table1", *SMALL, option, "x"])


@pytest.mark.parametrize(("verb", "word"), [(plan, "device=h100"), (plan, "--measure"), (report, "--serve")])
def test_options_of_training_are_refused(verb, word):
    with pytest.raises(UserError, match="is for what is trained; of table1, which is measured, there is"):
        verb.main(["table1", word])


@pytest.mark.parametrize("verb", [sweep.main, plan.main, report.main])
@pytest.mark.parametrize("word", ["seed=1", "arms=2"])
def test_it_has_neither_arms_nor_seeds(verb, word):
    with pytest.raises(UserError, match=f"table1 is measured, not trained, so that {word[:4]} says nothing of it"):
        verb(["table1", word])


@pytest.mark.parametrize("verb", [results.main, show])
def test_verbs_of_trained_runs_say_that_it_has_none(verb):
    with pytest.raises(UserError, match="table1 is measured, not trained, and has no arms: `etude sweep table1`"):
        verb(["table1"])
