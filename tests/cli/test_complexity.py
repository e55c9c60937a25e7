"""`etude complexity`: one table, its JSON and its picture."""

import json
import re
from xml.etree import ElementTree

import pytest

from etude.cli.complexity import main as complexity
from etude.errors import UserError

SMALL = ["--lengths", "4,8", "--widths", "8,16", "--repeats", "1"]


def test_the_table_the_numbers_and_the_picture_tell_of_the_same_layers(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    complexity([*SMALL, "model.encoder.kernel=5", "--output", "found.json", "--svg", "found.svg"])
    text = capsys.readouterr().out
    found = json.loads((tmp_path / "found.json").read_text())
    names = [row["layer"] for row in found["layers"]]
    assert names == ["self_attention", "recurrent", "convolutional", "separable", "restricted"]
    assert found["overrides"] == ["model.encoder.kernel=5"]
    assert all(re.search(rf"^{name} +O\(", text, re.MULTILINE) for name in names)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 120
    convolutional = found["layers"][2]
    assert convolutional["path"] == [{"n": 4, "length": 2}, {"n": 8, "length": 4}]  # two neighbours on either side
    cost = convolutional["costs"][-1]
    assert (cost["n"], cost["d"], cost["flops"]) == (8, 16, 2 * 5 * 8 * 16 * 32)
    picture = ElementTree.parse(tmp_path / "found.svg").getroot()
    lines = picture.findall(".//{*}polyline")
    assert len(lines) == 8 * len(names)
    assert all(len(line.attrib["points"].split()) == 2 for line in lines)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--lengths", "64,0"], "--lengths takes whole numbers above 0, such as --lengths 32,64,128,256, not '64,0'"),
        (["--widths", "wide"], "--widths takes whole numbers above 0"),
        (["--widths", "12", "--lengths", "4"], "model.heads=8 does not divide model.d_model=12"),
        (["--repeats", "2,3"], "--repeats is one number"),
        (["model.encoder.kernle=5"], "kernle"),
        (["model.encoder.kernel=4"], "kernel=4 is even"),
        (["model.d_model=64"], "model.d_model is what the table varies: say --widths"),
        (["model/attention=linear"], "model/attention is what the table varies"),
        (["table1"], "'table1' is not key=value"),
        (["--output"], "--output needs FILE"),
    ],
)
def test_a_mistake_is_one_sentence(words, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)) as caught:
        complexity(words)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "names no layer"),
        ("mine: {overrides: []}", "mine must have paper, overrides and flops"),
        ("mine: {paper: {path: n}, overrides: [], flops: {}}", "mine.paper must have complexity, sequential and path"),
        (
            "mine: {paper: {complexity: n, sequential: n, path: n}, overrides: [], flops: {n > d: {n: 1, d: 1}}}",
            "mine.flops: did you mean",
        ),
    ],
)
def test_a_file_of_your_own_is_read_first_and_its_mistakes_are_one_sentence(text, sentence, monkeypatch, tmp_path):
    (tmp_path / "experiments" / "table1").mkdir(parents=True)
    (tmp_path / "experiments" / "table1" / "layers.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=re.escape(sentence)):
        complexity(SMALL)
