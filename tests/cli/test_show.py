"""`etude show`: what is drawn is what is built."""

import io
import json
import math
import re
from dataclasses import asdict
from typing import Any

import pytest
from hydra.utils import get_object
from rich.console import Console
from torch import nn

from etude.cli.show import main as show
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.config.parts import make
from etude.errors import UserError
from etude.inspect.show.anatomy import Node, choices_by_module, count_parameters, describe_modules
from etude.inspect.show.drawing import render_tree
from etude.inspect.show.find_config import find_config
from etude.study.study import load_study, value_at
from etude.tasks import build

VARIATIONS = [*(f"axes/{arm}" for arm in load_study("axes").arms), "table3/big"]  # one for every value of every axis


@pytest.fixture
def shown(capsys, monkeypatch, tmp_path):
    """Runs `etude show WORDS` into a pipe, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*words: str) -> str:
        show(words)
        return capsys.readouterr().out

    return run


def counted_by_hand(node: dict[str, Any], times: int = 1) -> int:
    """The parameters of a tree in JSON, from the shapes that it prints and nothing else."""
    times *= node["times"]
    own = [text.split()[-1] for text in node["weights"] if not re.search(r"\bas\b", text)]
    counted = times * sum(math.prod(map(int, shape.split("×"))) for shape in own)
    return counted + sum(counted_by_hand(child, times) for child in node["children"])


@pytest.mark.parametrize("variation", VARIATIONS)
def test_every_choice_is_drawn_where_it_is_used_and_the_weights_add_up(variation):
    config = find_config([variation]).config
    built = build.shapes(config)
    tree = describe_modules(built, choices_by_module(config))
    total = sum(weight.numel() for weight in built.parameters())
    assert tree.parameters == counted_by_hand(asdict(tree)) == total
    console = Console(width=200, record=True, file=io.StringIO())  # a row is a line
    console.print(render_tree(config, tree, console.width))
    head, _, drawing = console.export_text().partition("\nmodule ")
    assert head.startswith(f"EncoderDecoder: {total:,} parameters")
    assert "_target_" not in head
    used = {type(module) for module in built.modules()}
    for group, value in config["choices"].items():
        if group.startswith("model/"):
            assert f"\n{group}={value} " in head
            target = value_at(config, f"{group.replace('/', '.')}._target_")
            places = [line for line in drawing.splitlines() if f" {group}={value} " in line]
            # What fills the weights is no module, conventions are no class, and rezero has no use for a norm.
            assert bool(places) == (target is not None and get_object(target) in used)
            assert all(f"  {target.rpartition('.')[2]} " in line for line in places)


def test_machines_get_the_same_tree(shown):
    made = json.loads(shown("model/tying=none", "--json"))
    assert (
        made["model"]["parameters"]
        == counted_by_hand(made["model"])
        == count_parameters(find_config(["model/tying=none"]).config)
    )
    assert made["choices"]["model/tying"] == "none"
    assert made["sizes"]["d_k"] == 16


@pytest.mark.parametrize("words", [["model=big", "scale=full"], ["model/conventions=t2t_2017", "scale=full"]])
def test_a_pipe_gets_at_most_120_plain_columns_and_no_word_is_cut(shown, words):
    text = shown(*words)
    assert max(map(len, text.splitlines())) <= 120
    assert "\x1b" not in text
    assert "…" not in text


def test_a_narrow_terminal_loses_a_column_and_no_number(shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = shown("scale=full")
    assert "…" not in text
    assert "100.0%" in text


def test_tied_weights_count_once_and_are_marked(shown):
    text = shown("model/tying=all")
    [source] = re.findall(r"source_table  WordTable .*", text)
    assert "128,000" in source
    for name in ("target_table", "output_table"):
        [line] = re.findall(rf"{name}  .*", text)
        assert "as source_table" in line
        assert "128,000" not in line


def test_sizes_left_open_are_shown_as_what_they_become(shown):
    assert {"d_k 16", "d_v 16", "vocabulary 2000"} <= set(re.split(r"\s{2,}", shown("model.heads=4")))


def test_layers_that_are_alike_fold_and_others_do_not():
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3), nn.Linear(2, 2)])
            self.layers[3].weight = self.layers[0].weight
            self.twice = self.layers[2]

    tree = describe_modules(Stack(), {nn.Linear: "kind=linear"})
    layers, twice = tree.children
    assert [(node.name, node.times, node.weights) for node in layers.children] == [
        ("0–1", 2, ("2×2", "bias 2")),
        ("2", 1, ("2×3"[::-1], "bias 3")),
        ("3", 1, ("weight as layers.0.weight", "bias 2")),
    ]
    assert twice == Node("twice", "Linear", "kind=linear", ("as layers.2",), 0, ())
    assert tree.parameters == sum(weight.numel() for weight in Stack().parameters()) == 6 + 6 + 9 + 2


def test_a_run_is_shown_as_it_was_frozen(shown):
    run = freeze(compose(["experiment=table3/E1", "model.d_ff=96"]))
    assert shown(f"run={run.path}") == shown(str(run.path)) == shown("table3/E1", "model.d_ff=96")


def test_a_run_is_shown_with_the_subwords_that_it_has_learned_not_with_the_most_it_may(shown):
    run = freeze(compose(["tokenizer=char"]))
    text = shown(str(run.path))
    assert "vocabulary ≤2000" in text
    assert " parameters at most\n" in text
    characters = "ein kleiner hund sieht die alte frau"
    run.tokenizer_file.write_bytes(make(run.config()["tokenizer"]).train([characters] * 20))
    learned = 4 + len({*characters})  # the space among them, and four special tokens
    for _ in range(2):  # while it is trained, and when it is finished, where the result is all that may be left
        counted = sum(weight.numel() for weight in build.model(run.config(), learned).parameters())
        text = shown(str(run.path))
        assert text.startswith(f"EncoderDecoder: {counted:,} parameters")
        assert f"vocabulary {learned}" in text
        run.tokenizer_file.unlink(missing_ok=True)
        run.write_result({"vocabulary": learned})


def test_the_count_is_the_papers_at_full_size(shown):
    """Table 3 prints 65 M and, for row (C) with six layers taken to two, 36 M; both with 37,000 subwords."""
    for arm, paper in (("base", 65), ("C1", 36)):
        count = count_parameters(find_config([f"table3/{arm}", "scale=full", "data.vocab_size=37000"]).config) / 1e6
        assert abs(count - paper) < 2.5, arm


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["table3"], "table3 is a study: name one of its arms, such as table3/base"),
        (["tabel3/A1"], "did you mean table3/A1"),
        (["runs/single/base/seed1-0"], "is not the directory of a run"),
        (
            ["table3/A1", "table3/A2"],
            "table3/A1 and table3/A2 are 2 arms: show one, or all in one model: table3/A1+table3",
        ),
        (["table3/A1", "~model/nrm"], "model/nrm"),
        (["run=nowhere"], "nowhere is not the directory of a run"),
        (["model.n_layers=0"], "model.n_layers must be at least 1"),
    ],
)
def test_a_mistake_is_one_sentence(shown, words, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)) as caught:
        shown(*words)
    assert "\n" not in str(caught.value)


def test_a_run_is_found_by_what_names_it_for_other_commands(shown):
    run = freeze(compose(["model.heads=8"]))
    names = [str(run.path), f"run={run.path}", f"{run.path}/training/checkpoints/last.ckpt", run.id.partition("-")[2]]
    assert len({shown(name) for name in [*names, "single/base/1", "run=single/base/1"]}) == 1
    assert shown("single/base/1") != shown("model.heads=4")
    freeze(compose(["model.heads=2"]))
    with pytest.raises(UserError, match="single/base/1 names 2 runs; say which"):
        shown("single/base/1")


def test_nothing_can_be_changed_in_a_run(shown):
    run = freeze(compose())
    with pytest.raises(UserError, match=r"leave out model\.heads=4"):
        shown(str(run.path), "model.heads=4")


def test_a_run_older_than_a_key_and_a_torn_config_are_one_sentence(shown):
    run = freeze(compose())
    whole = run.config_file.read_text()
    for text, sentence in (
        (
            whole.replace("\n  dropout: 0.1\n", "\n"),
            "the config of this run was written by another version of the code \\(model\\.dropout is missing",
        ),
        (whole.replace("\n  dropout: 0.1\n", "\n  dropout: [0.1\n"), r"config\.yaml is incomplete: delete the"),
        ("", r"config\.yaml is incomplete: delete the directory"),
    ):
        run.config_file.write_text(text)
        with pytest.raises(UserError, match=sentence):
            shown(str(run.path))


def test_the_gloss_of_a_users_own_value_is_read_where_it_was_found(shown, tmp_path):
    own = tmp_path / "mine" / "model" / "scale" / "constant.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# Mine alone.\n_target_: etude.model.scale.SqrtDk\n_partial_: true\nd_k: 16\n")
    assert "Mine alone." in shown(f"hydra.searchpath=[file://{tmp_path}/mine]", "model/scale=constant")


def test_a_run_with_a_value_that_is_not_here_is_shown_without_its_gloss(shown):
    run = freeze(compose())
    run.config_file.write_text(run.config_file.read_text().replace("model/scale: sqrt_dk", "model/scale: constant"))
    assert "model/scale=constant" in shown(str(run.path))


def test_a_model_without_a_decoder_is_drawn_without_one(shown):
    printed = shown("task=masked_language_modelling")
    assert printed.startswith("EncoderOnly")
    assert "decoder" not in printed
