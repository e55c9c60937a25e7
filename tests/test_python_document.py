"""docs/python.md, typed from top to bottom as a notebook does; and the notebook that is made of it."""

import ast
import runpy
from pathlib import Path
from typing import Any

import pytest
from tests import warm

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
MADE = runpy.run_path(str(ROOT / "docs" / "notebook.py"))
SMALL = ["data.train_pairs=300", "data.valid_pairs=8", "data.test_pairs=8", "data.vocab_size=300", "logger=none"]
SMALL += ["model.d_model=16", "model.d_ff=16", "budget.max_steps=2", "trainer=cpu"]


def shown(cell: str, names: dict[str, Any]) -> str:
    """Run a cell, and show its last value as a notebook and a terminal would."""
    *before, last = ast.parse(cell).body
    if not isinstance(last, ast.Expr):
        exec(cell, names)
        return ""
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return repr(value) + (value._repr_html_() if hasattr(value, "_repr_html_") else "")


@pytest.mark.slow
def test_the_page_works_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETUDE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "in.en").write_text("the dog sleeps .\n")
    names: dict[str, Any] = {}
    for kind, text in MADE["cells"](PAGE):
        if kind == "python":
            shown(text, names)
        for line in text.splitlines() if kind == "shell" else ():
            words, _, out = line.removeprefix("etude ").partition(" < in.en > ")
            small = SMALL if words.startswith("train") else []
            done = warm.run(warm.ETUDE, *words.split(), *small, text=(tmp_path / "in.en").read_bytes())
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
            if out:
                assert done.stdout.startswith(
                    "line\trank\ttranslation\tscore" if "tsv" in out else '{"line": 1, "source"'
                )
    assert (tmp_path / "A1.safetensors").is_file()
    assert len(names["runs"]) == 2
    assert names["run"].config["arm"] == "A1"


def test_the_notebook_is_that_of_the_page() -> None:
    told = "it was made of an earlier page: python docs/notebook.py"
    assert MADE["NOTEBOOK"].read_text(encoding="utf-8") == MADE["notebook"](PAGE), told
