"""`etude analyze` on a run that was really trained, and its mistakes."""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests import warm

import etude.inspect.analyze
from etude.cli.analyze import analyze
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.config.resolve import resolve
from etude.decoding.beam import BeamSearch
from etude.errors import UserError
from etude.inspect.analyze.analysis import analyze_run
from etude.inspect.analyze.subject import Subject
from etude.inspect.analyze.summary import render_summary
from etude.store.run_dir import RunDir

from .conftest import status

TINY = ["model.d_model=8", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "trainer=cpu", "logger=none"]
FEW = ["sentences=20", "beams=[1,2]", "alphas=[0,1]", "device=cpu"]


def etude_analyze(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [warm.python(), "-m", "etude", "analyze", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False, timeout=300)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A finished run of ten steps that kept two checkpoints to be averaged."""
    from etude.training.run import train

    place = tmp_path_factory.mktemp("analysed")
    text = ["data.train_pairs=400", "data.valid_pairs=10", "data.test_pairs=40", "tokenizer.vocab_size=200"]
    folders = [f"runs_dir={place / 'runs'}", f"cache_dir={place / 'cache'}"]
    budget = ["budget=smoke", "averaging.checkpoints=2", "averaging.every=3", "decoding.max_len_offset=5"]
    run = freeze(compose([*TINY, *text, *folders, *budget]))
    train(run)
    return run


@pytest.mark.slow
def test_a_run_is_analysed_into_one_file_and_told_on_the_terminal(trained):
    done = etude_analyze(f"run={trained.path}", *FEW, cwd=trained.path)
    assert done.returncode == 0, done.stderr
    file = trained.path / "analysis.json"
    assert done.stdout.endswith(f"{file}\n")
    assert file.stat().st_size < 300_000
    found = json.loads(file.read_text())
    documented = re.findall(r"^    (\w+)  ", etude.inspect.analyze.__doc__, re.MULTILINE)
    assert list(found) == documented
    assert found["settings"]["sentences"] == 20
    assert [len(found[key]) for key in ("heads", "maps", "decoding", "averaging")] == [6, 3, 4, 2]
    for said in ("20 sentences of the test set", "without head", "random order", "length ratio", "last checkpoints"):
        assert said in done.stdout
    assert found["averaging"][-1]["perplexity"] == pytest.approx(found["intact"]["perplexity"])

    again = etude_analyze(f"run={trained.path}", *FEW, "--json", cwd=trained.path)
    assert again.stdout == file.read_text()
    assert json.loads(again.stdout) == found, "asked twice, it answers the same"


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"sentences": 0}, "sentences=0 must be at least 1"),
        ({"beams": [1, 0]}, "beams=[1, 0] must be a list of whole numbers from 1 to 10,000"),
        ({"beams": [4, 100_000]}, "beams=[4, 100000] must be a list of whole numbers from 1 to 10,000"),
        ({"beams": [1.5]}, "beams=[1.5] must be a list of whole numbers from 1 to"),
        ({"alphas": [0, -1]}, "alphas=[0, -1] must be a list of numbers from 0 on"),
        ({"alphas": ["x"]}, "alphas=['x'] must be a list of numbers from 0 on"),
        ({}, "nowhere is not the directory of a run"),
    ],
)
def test_a_setting_out_of_its_range_is_refused(setting, sentence):
    config = resolve(compose(["run=nowhere"], config_name="analyze"))
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}"):
        analyze(config | setting, as_json=False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run=x", "beams=4"], "beams must be a list, not 4"),
        (["sentence=9"], "sentence is not a key of the config; did you mean sentences"),
        ([], "run is left open (???): say run=..."),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert status("analyze", *words) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_what_is_not_finite_is_told_as_a_dash():
    heads = [
        {"attention": kind, "layer": 1, "head": 1, "perplexity": None, "change": None, "interval": [None, None]}
        | {"entropy": 0.5, "distance": 1.0, "bleu": None}
        for kind in ("encoder", "decoder", "cross")
    ]
    nothing = {"perplexity": None, "change": None, "interval": [None, None]}
    found = {
        "settings": {"split": "test", "sentences": 1, "seed": 1, "metric": "bleu", "decoding": {"beam": 4}},
        "intact": {"perplexity": None, "bleu": 0.0},
        "heads": heads,
        "order": nothing,
        "lengths": [
            {"joined": 1, "pieces": [1, 8], "sentences": 1, "longer_than_trained": None, "bleu": 0.0} | nothing
        ],
        "trained": {"longest": None},
        "decoding": [{"beam": 1, "alpha": 0, "bleu": 0.0, "length_ratio": 1.0} | nothing],
        "averaging": [{"checkpoints": 1, "bleu": 0.0} | nothing],
    }
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        terminal = Console(record=True, width=80, file=nowhere)
        terminal.print(render_summary(found))
        told = terminal.export_text()
        terminal.print(render_summary(found | {"decoding": []}))
    assert "perplexity -, BLEU 0.0" in told
    assert "random order: perplexity -, - [-, -]" in told
    assert "length ratio" in told
    assert "length ratio" not in terminal.export_text()  # no searches, as of beams=[]: no empty table


@pytest.mark.slow
def test_a_missing_checkpoint_is_one_sentence_and_leaves_no_file(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("config.yaml", "tokenizer.model", "result.json"):
        (tmp_path / name).write_bytes((trained.path / name).read_bytes())
    assert status("analyze", f"run={tmp_path}") == 2
    told = capsys.readouterr().err
    assert "were deleted: `etude train" in told
    assert told.count("\n") == 1
    assert not (tmp_path / "analysis.json").exists()


class OwnSearch(BeamSearch):
    """A search that has nothing to set but the length."""

    def __init__(self, *, max_len_offset: int) -> None:
        super().__init__(beam=2, alpha=0.6, max_len_offset=max_len_offset)


@pytest.mark.slow
def test_a_search_of_ones_own_without_beam_and_alpha_is_not_tried_with_others(trained):
    subject = Subject.of(trained, "cpu")
    mine = replace(
        subject, config=subject.config | {"decoding": {"_target_": f"{__name__}.OwnSearch", "max_len_offset": 5}}
    )
    asked = {"sentences": 8, "maps": 1, "seed": 0, "beams": [1], "alphas": [0], "removal_bleu": False}
    assert analyze_run(mine, asked)["decoding"] == []
    assert len(analyze_run(subject, asked)["decoding"]) == 1


def test_what_cannot_be_kept_is_shown_all_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("etude.inspect.analyze.analysis.analyze_run", lambda subject, config: {"answer": 42})
    monkeypatch.setattr("etude.inspect.analyze.subject.Subject.of", lambda run, device: None)
    (tmp_path / "config.yaml").touch()
    (tmp_path / "analysis.json").mkdir()  # in its place no file can be written
    asked = {"run": str(tmp_path), "device": "cpu", "sentences": 1, "maps": 0, "seed": 0, "beams": [1], "alphas": [0]}
    analyze(asked, as_json=True)
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"answer": 42}
    assert "the answers above are not kept, and no page shows them" in shown.err


@pytest.mark.slow
def test_attention_that_passes_its_weights_nowhere_is_analysed_without_where_it_looks(trained, monkeypatch):
    """As one of the user's may be: its heads can be removed, and nobody can tell what they look at."""
    monkeypatch.setattr("etude.inspect.analyze.analysis.measure_spreads", lambda subject, text: {})
    asked = {"sentences": 5, "seed": 1, "removal_bleu": False, "beams": [1], "alphas": [0.6], "maps": 1}
    found = analyze_run(Subject.of(trained, "cpu"), asked)
    assert [(head["entropy"], head["distance"]) for head in found["heads"]] == [(None, None)] * 6
    assert all(head["perplexity"] > 1 for head in found["heads"])
    console = Console(width=100)
    with console.capture() as shown:
        console.print(render_summary(found))
    assert re.search(r"encoder +1 +- +- ", shown.get())
