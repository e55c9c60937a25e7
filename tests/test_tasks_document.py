"""docs/tasks.md: its example is followed to the letter, and its table says what there is."""

import re
import sys
from pathlib import Path

import pytest

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.rules import check_rules
from etude.config.signature import signature
from etude.paths import shipped

DOCUMENT = (Path(__file__).parents[1] / "docs" / "tasks.md").read_text(encoding="utf-8")


def test_the_table_holds_every_task():
    named = re.findall(r"^\| `(\w+)` \|", DOCUMENT, flags=re.MULTILINE)
    assert sorted(named) == sorted(file.stem for file in (shipped("conf") / "task").glob("*.yaml"))


@pytest.mark.parametrize("command", re.findall(r"^etude train (.*)$", DOCUMENT, flags=re.MULTILINE))
def test_what_a_task_needs_it_brings_along(command):
    check_rules(compose(command.split()))


def test_a_task_of_ones_own_is_trained_as_it_is_written_there(tmp_path, monkeypatch, capsys):
    for file, block in re.findall(r"`((?:mine|conf)/\S+)`:\n\n```\w+\n(.*?)```", DOCUMENT, flags=re.DOTALL):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    for module in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        monkeypatch.delitem(sys.modules, module)
    signature.cache_clear()
    sizes = [f"data.{split}_pairs={n}" for split, n in (("train", 300), ("valid", 20), ("test", 20))]
    with pytest.raises(SystemExit) as ended:
        main(["train", "task=copying", "budget=smoke", "logger=none", "data.vocab_size=300", "cache_dir=cache", *sizes])
    signature.cache_clear()
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err
    assert "test perplexity" in printed.out
