"""Of runs of a text or a study that was edited meanwhile, a table holds those of today."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.cli.results import main as results
from etude.config.compose import compose
from etude.config.identity import fingerprints
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.report import report
from etude.runs.run_dir import RunDir

Make = Callable[..., RunDir]
Launch = Callable[..., RunDir]
OLD, EDITED = "the cat\n", "the dog\n"
NONE = {"source": None, "target": None, "tsv": None}


@pytest.fixture
def launch(tmp_path: Path, make_run: Make) -> Launch:
    """Fabricates a run with the text that it met: what `my.en` holds from then on."""

    def make(arm: str, text: str, file: str = "my", seed: int = 1, **more: Any) -> RunDir:
        write(tmp_path, text, file)
        files = {"source": f"{file}.en", "target": f"{file}.de", "tsv": None}
        data = {"_target_": "etude.data.text_files.FilesCorpus", **files, "valid": NONE, "test": NONE}
        data |= {"holdout": 1, "languages": ["en", "de"], "columns": None, "vocab_size": 10}
        met = fingerprints({"data": data}).all
        return make_run(arm, seed, changed={"data": data}, text=met, store=f"store of {met}", **more)

    return make


def write(folder: Path, text: str, file: str = "my") -> None:
    for language in ("en", "de"):
        (folder / f"{file}.{language}").write_text(text * 20)


def scores(runs_dir: Path, **where: str) -> dict[str, str]:
    rows = report("heads", runs_dir, where).rows
    place = [f"{column.header} {column.whose}" for column in rows.columns].index("BLEU ours")
    return {row.cells[0]: row.cells[place] for row in rows.rows if row.run}


def left_out(runs_dir: Path, **where: str) -> list[str]:
    return report("heads", runs_dir, where).rows.left_out


def test_after_a_text_was_put_back_the_runs_of_that_text_are_shown_and_a_key_selects_the_others(
    runs_dir: Path, launch: Launch
) -> None:
    for arm in ("base", "A1"):
        launch(arm, OLD, bleu=10.0)
    for arm in ("base", "A1", "A2"):
        edited = launch(arm, EDITED, bleu=20.0).text_file.read_text().strip()
    assert scores(runs_dir) == {"base": "20.0", "A1": "20.0", "A2": "20.0"}
    write(runs_dir.parent, OLD)
    assert scores(runs_dir) == {"base": "10.0", "A1": "10.0"}
    key = edited[:8]
    assert left_out(runs_dir) == [f"Left out: 3 runs of another setting: say text={key} to see them."]
    assert scores(runs_dir, text=key) == scores(runs_dir, text=edited) == {"base": "20.0", "A1": "20.0", "A2": "20.0"}
    assert left_out(runs_dir, text=key) == ["Left out: 2 runs of another setting: say text=today to see them."]
    assert scores(runs_dir, text="today") == {"base": "10.0", "A1": "10.0"}
    with pytest.raises(UserError, match="no finished run has text=beef"):
        report("heads", runs_dir, {"text": "beef"})


def test_the_version_of_a_text_that_is_gone_is_told_below_the_table(runs_dir: Path, launch: Launch) -> None:
    key = launch("base", OLD).text_file.read_text()[:8]
    launch("base", EDITED)
    assert f"text={key}" in "\n".join(report("heads", runs_dir, {"text": key}).rows.notes)
    assert "text=" not in "\n".join(report("heads", runs_dir, {}).rows.notes)


def test_the_same_runs_are_listed(runs_dir: Path, launch: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    launch("base", OLD, bleu=10.0)
    launch("base", EDITED, bleu=20.0)
    write(runs_dir.parent, OLD)
    results(["heads"])
    told = capsys.readouterr()
    assert ",10.0," in told.out
    assert ",20.0," not in told.out
    assert "text=" in told.err


def test_two_files_that_are_both_there_are_told_apart_by_their_fingerprints(runs_dir: Path, launch: Launch) -> None:
    first = launch("base", OLD, "one", bleu=10.0).text_file.read_text()[:8]
    launch("base", EDITED, "other", bleu=20.0)
    assert scores(runs_dir) == {"base": "20.0"}
    assert left_out(runs_dir) == [f"Left out: 1 run of another setting: say text={first} to see them."]
    assert scores(runs_dir, text=first) == {"base": "10.0"}


def test_where_every_arm_met_one_text_nothing_is_parted_or_asked(
    runs_dir: Path, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch("base", OLD)
    launch("A1", EDITED)
    monkeypatch.setattr("etude.config.identity.fingerprints", None)
    assert set(scores(runs_dir)) == {"base", "A1¹"}


def test_a_text_that_cannot_be_read_is_nobodys(runs_dir: Path, launch: Launch) -> None:
    launch("base", OLD, bleu=10.0)
    launch("base", EDITED, bleu=20.0)
    (runs_dir.parent / "my.en").unlink()
    assert scores(runs_dir) == {"base": "20.0"}


@pytest.fixture
def edit(runs_dir: Path, make_run: Make) -> Callable[..., None]:
    """Gives the arm A1 other heads in study.yaml, and unless it is said otherwise makes a run of it."""

    def make(heads: int, bleu: float | None = None) -> None:
        file = runs_dir.parent / "experiments" / "heads" / "study.yaml"
        file.write_text(f"title: heads\nbaseline: base\narms: {{base: [], A1: [model.heads={heads}]}}\n")
        if bleu is not None:
            make_run("A1", bleu=bleu, changed=resolve(compose(["experiment=heads/A1"])))

    return make


def test_of_an_arm_that_was_edited_and_edited_back_the_runs_of_today_are_shown(
    runs_dir: Path, make_run: Make, edit: Callable[..., None]
) -> None:
    make_run("base", changed=resolve(compose(["study=heads"])))
    edit(2, bleu=20.0)
    edit(4, bleu=40.0)
    assert scores(runs_dir)["A1"] == "40.0"
    edit(2)
    assert scores(runs_dir)["A1"] == "20.0"
    assert left_out(runs_dir) == ["Left out: 1 run of another config or text than those shown of the same arm."]


def test_of_an_arm_that_was_edited_and_not_run_the_newest_are_shown_and_said_to_be_others(
    runs_dir: Path, make_run: Make, edit: Callable[..., None]
) -> None:
    make_run("base", changed=resolve(compose(["study=heads"])))
    edit(2, bleu=20.0)
    edit(4)
    assert scores(runs_dir) == {"base": "40.0", "A1¹": "20.0"}
    note = "¹ Of another config than study.yaml and conf/ give the arm now; etude sweep heads makes the runs that are."
    assert note in report("heads", runs_dir, {}).rows.notes


def test_where_every_run_has_the_values_of_its_arm_hydra_is_not_asked(
    runs_dir: Path, make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arm in ("base", "A1", "E1", "long"):
        make_run(arm)
    monkeypatch.setattr("etude.config.compose.compose", None)
    assert len(scores(runs_dir)) == 4
