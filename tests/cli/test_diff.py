"""`etude diff`: what a person reads about two configs is so."""

import re
from pathlib import Path

import pytest

from etude.cli.diff import main as diff
from etude.config.compose import compose
from etude.config.compose_cache import expand
from etude.config.freeze import freeze
from etude.errors import UserError
from etude.inspect.show.anatomy import count_parameters
from etude.inspect.show.find_config import find_config


@pytest.fixture
def told(capsys, monkeypatch, tmp_path):
    """Runs `etude diff A B` into a pipe, in an empty folder: its lines, spaces folded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(before: str, after: str) -> list[str]:
        diff([before, after])
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip()]

    return run


def test_choices_come_first_then_values_then_what_follows(told):
    lines = told("", "table3/E1 model.heads=1")
    assert lines == [
        "the default table3/E1 model.heads=1",
        "choices",
        "model/position sinusoidal learned",
        "values",
        *sorted(["model.heads 4 1", "model.position.max_length – 512"], key=lines.index),
        "what follows from them",
        "model.attention.d_k 16 64",
        "model.attention.d_v 16 64",
        lines[-1],
    ]


def test_the_parameters_of_both_are_told(told):
    before, after = (count_parameters(find_config([arm]).config) for arm in ("table3/base", "table3/C6"))
    assert told("table3/base", "table3/C6")[-1] == f"parameters {before:,} {after:,} ({after / before - 1:+.1%})"
    assert told("table3/base", "table3/D1")[-1] == f"parameters {before:,} {before:,}"


def test_the_parameters_of_a_run_are_those_of_the_subwords_that_it_has_learned(told):
    run = freeze(compose(["tokenizer=char", "model.d_ff=96"]))
    run.write_result({"vocabulary": 65})
    as_many = count_parameters(find_config(["model.d_ff=96", "data.vocab_size=65"]).config)
    assert told(str(run.path), "tokenizer=char")[-1].startswith(f"parameters {as_many:,} ")


def test_a_factor_is_the_cause_and_the_sizes_follow(told):
    lines = told("", "scale=small budget=pocket")
    assert lines[1:5] == ["choices", "scale pocket small", "values", "scale.width 0.125 0.5"]
    assert "model.d_model 64 256" in lines[lines.index("what follows from them") :]


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("", "seed=1"), ("table3/A1", "model.heads=1"), ("table3/base", "seed=1 model=base")],
)
def test_two_ways_to_say_one_config_are_no_difference(told, before, after):
    assert told(before, after) == ["no difference: the two configs hold the same values"]


def test_a_run_is_compared_by_what_was_frozen_and_its_causes_are_still_known(told):
    run = freeze(compose(["experiment=table3/A1"]))
    assert told(str(run.path), "table3/A1") == ["no difference: the two configs hold the same values"]
    assert told(f"run={run.path}", "")[1:] == told("table3/A1", "")[1:]


def test_of_two_runs_that_differ_in_their_text_alone_this_is_told(told):
    pairs = Path("pairs.tsv")
    runs = []
    for word in ("a", "b"):
        pairs.write_text(f"{word}\tx\n" * 9)
        runs.append(freeze(compose(["data=files", "data.tsv=pairs.tsv"])))
    before, after = map(str, (run.path for run in runs))
    same = "no difference: the two configs hold the same values"
    assert told(before, before) == [same]
    assert told(before, after) == [f"{same}, but the runs are of different text"]


def test_what_follows_is_told_by_what_the_run_itself_was_written_with(told):
    run = freeze(compose(["budget.steps=0.01"]))
    assert _follows("budget.max_steps 1000 6000", told(str(run.path), "budget=small"))
    run.written_file.unlink()
    assert not _follows("budget.max_steps 1000 6000", told(str(run.path), "budget=small"))


def test_a_run_older_than_a_key_is_compared_all_the_same(told):
    run = freeze(compose())
    for file in (run.config_file, run.written_file):
        file.write_text(re.sub(r"^  dropout: .*\n", "", file.read_text(), flags=re.MULTILINE))
    assert told(str(run.path), "")[1:] == ["values", "model.dropout – 0.1", "parameters ? 475,904"]


def _follows(line: str, lines: list[str]) -> bool:
    """Whether the line stands among the consequences; it must stand somewhere."""
    return "what follows from them" in lines[: lines.index(line)]


def test_the_directory_of_a_run_may_have_spaces_in_its_name(told):
    run = freeze(compose(["model.heads=2"]))
    moved = run.path.rename("my run")
    assert told(str(moved), "")[1:] == told(f"run={moved}", "")[1:] == told("model.heads=2", "")[1:]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["table3/A1"], "diff takes two configs, not 1"),
        (["a", "b", "c"], "not 3"),
        (["tabel3/A1", ""], "did you mean table3/A1"),
        (["", "model.heads='"], "cannot be read as overrides: no closing quotation"),
        (["", "model/position=lerned"], "did you mean learned"),
        (["runs/single/base/seed1-0", ""], "is not the directory of a run"),
        (["", f"{'model.heads=4 ' * 30}model.heads=x"], "model.heads"),  # longer than a file's name may be
    ],
)
def test_a_mistake_is_one_sentence(words, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)) as caught:
        diff(words)
    assert "\n" not in str(caught.value)


def test_an_arm_of_a_study_with_an_error_is_answered_with_the_error(tmp_path, monkeypatch):
    (tmp_path / "experiments" / "mine").mkdir(parents=True)
    (tmp_path / "experiments" / "mine" / "study.yaml").write_text("titel: x\nbaseline: a\narms: {a: [], b: []}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"titel.*did you mean title"):
        diff(["mine/a", "mine/b"])
    with pytest.raises(UserError, match=r"titel.*did you mean title"):
        expand(["experiment=glob(mine/*)"])


def test_a_run_whose_class_is_gone_is_compared_all_the_same(told):
    run = freeze(compose())
    run.config_file.write_text(run.config_file.read_text().replace("etude.model.scale.SqrtDk", "gone.Scale"))
    assert told(str(run.path), "")[-1] == "parameters ? 475,904"
