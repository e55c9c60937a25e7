"""What a user wrote is printed as it was written, in every view: rich reads `[b]` and `:x:` otherwise."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.cli import diff
from etude.cli.report import main as report
from etude.cli.status import main as status
from etude.config.difference import difference
from etude.inspect.analyze.summary import render_summary
from etude.inspect.plan import table as plan_table
from etude.inspect.plan.runs import PROPORTIONS, RunPlan
from etude.inspect.show.anatomy import Node
from etude.inspect.show.drawing import render_tree
from etude.launch.dashboard import dashboard
from etude.launch.job import Job
from etude.report.notes import Note
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.report.render.terminal import RenderedTable
from etude.store.run_dir import RunDir
from etude.tasks.text_size import TextSize
from etude.terminal import console

LISTED = ["[en,fr]", "[/x]", "[/]", "[b]x", ":x:", "\\[", "[bold]", "x[1]", "[link=a]"]
WORDS = st.text(st.sampled_from("[]/\\:=x,@1#é\"'{}"), min_size=1)
TEST = {"perplexity": 3.0, "bleu": 40.0, "sentences": 10, "tokens": 100, "signature": "s"}


def shown(renderable: object) -> str:
    out = console(file=io.StringIO(), width=1000)
    out.print(renderable)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def run_of_a_study(folder: Path, study: str, arm: str, *typed: str) -> RunDir:
    run = RunDir(folder / "runs" / study / arm / "seed1-0123abcd")
    run.path.mkdir(parents=True)
    config = {"arm": arm, "seed": 1, "model": {"heads": 4}, "budget": {"max_steps": 1}, "choices": {}}
    run.config_file.write_text(yaml.safe_dump(config))
    run.overrides_file.write_text("".join(f"{word}\n" for word in typed), encoding="utf-8")
    run.result_file.write_text(json.dumps({"parameters": 1, "steps": 1, "test": TEST, "finished": True}))
    return run


def of_status(words: str) -> str:
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as out:
        run_of_a_study(Path(folder), "single", "base", words)
        status([f"runs_dir={folder}/runs"])
    return out.getvalue()


def of_report(words: str) -> str:
    rows = Rows("own", words, [Column("arm", words=True), Column(words, about_arm=True), Column("PPL", words)])
    rows.rows.append(Row("base", [*map(Cell, ["base", words, words])], run=True))
    rows.notes.append(Note(words))
    return shown(RenderedTable(rows))


def of_picture(words: str) -> str:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        study = Path("experiments", "own", "study.yaml")
        study.parent.mkdir(parents=True)
        study.write_text(yaml.safe_dump({"title": words, "baseline": "base", "arms": {"base": []}}), encoding="utf-8")
        run_of_a_study(Path(), "own", "base", "experiment=own/base")
        report(["own", "--svg", "own.svg"])
        return "".join(ElementTree.parse("own.svg").getroot().itertext())


def of_plan(words: str) -> str:
    config = {"seed": 1, "study": "single", "arm": words}
    text = TextSize(None, None, source=1, target=1, sentences=1, vocabulary=1, tokens=1, batches=1, prepared=True)
    run = RunPlan(config, text, 1, 1, 1, 1, 1, 1, 1, 1, state="to do")
    where: Any = SimpleNamespace(name="cpu")
    return shown(plan_table.render_plan([run], [{"model/position": words}], [None], where))


def of_proportions(words: str) -> str:
    return shown(plan_table.render_proportions([(words, [dict.fromkeys(PROPORTIONS, 1.0)])], {}))


def of_show(words: str) -> str:
    config = {"model": {"attention": {}, "position": {"x": words}}, "choices": {"model/position": "rope"}}
    tree = Node("", "Transformer", words, ("2×2",), 4, ())
    return shown(render_tree(config | {"tokenizer": {"vocab_size": 5}}, tree, 1000))


def of_diff(words: str) -> str:
    found = difference({"choices": {"data": "grammar"}}, {"choices": {"data": words}})
    return shown(diff._render_difference([words, words], found, (1, 2)))


def of_live(words: str) -> str:
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as out, pytest.MonkeyPatch.context() as patch:
        run = run_of_a_study(Path(folder), "single", words.replace("/", "|"))
        out.isatty = lambda: True  # type: ignore[method-assign]
        patch.setenv("TERM", "xterm")  # a dumb one has no table that moves
        with dashboard([Job(run)]):
            pass
    return out.getvalue().replace("|", "/")


def of_analyze(words: str) -> str:
    found = {
        "settings": {"split": "test", "sentences": 1, "seed": 1, "metric": "bleu", "decoding": {"name": words}},
        "intact": {"perplexity": 1.0, "bleu": 1.0},
        "heads": [
            {"attention": words, "layer": 1, "head": 1, "change": 0.1, "interval": [0, 1], "entropy": 1, "distance": 1}
        ],
        "order": {"perplexity": 1.0, "change": 0.1, "interval": [0.0, 0.1]},
        "lengths": [],
        "trained": {"longest": None},
        "decoding": [],
        "averaging": [],
    }
    return shown(render_summary(found))


def each_listed(test: Callable[..., None]) -> Callable[..., None]:
    for words in LISTED:
        test = example(words=words)(test)
    return test


VIEWS = [of_status, of_report, of_picture, of_plan, of_proportions, of_show, of_diff, of_live, of_analyze]


@settings(max_examples=10, deadline=None)
@each_listed
@given(words=WORDS)
@pytest.mark.parametrize("view", VIEWS)
def test_what_a_user_wrote_is_shown_as_it_stands(view: Callable[[str], str], words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        patch.setenv("TERM", "dumb")
        assert words in view(words)


@pytest.mark.parametrize(("columns", "width"), [("0", 120), ("", 120), ("many", 120), ("64", 64)])
def test_a_pipe_is_as_wide_as_columns_says_where_that_is_a_width(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert console(file=io.StringIO()).width == width
