"""The documents keep their promises: commands that exist, values that exist, files that exist."""

import re
import shlex
from pathlib import Path

import pytest

from etude.cli import VERBS
from etude.config.check import check
from etude.config.compose import compose
from etude.paths import shipped
from etude.sweep.sweepfile import sweep_overrides

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    """The lines of the fenced blocks that a person would type, comments cut off."""
    blocks = re.findall(r"^```\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.split("   #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if re.match(r"(etude|make|pip|echo) ", line)]


ETUDE = [line.split("| ")[-1] for line in commands(README) if "etude " in line and not line.startswith(("make", "pip"))]


def test_the_readme_has_at_most_200_lines_and_opens_with_the_two_commands():
    assert len(README.splitlines()) <= 200
    assert [line.split()[1] for line in commands(README)[:2]] == ["table3", "test"]


@pytest.mark.parametrize("command", [line for line in commands(README) if line.startswith("make")])
def test_every_make_target_of_the_readme_is_there(command):
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("command", ETUDE)
def test_every_command_of_the_readme_is_understood(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    program, verb, *words = shlex.split(command)
    assert program == "etude"
    assert verb in VERBS
    if verb == "report":
        assert (shipped("experiments") / words[0] / "study.yaml").is_file()
        return
    if verb == "sweep":
        words = sweep_overrides(words[0], words[1:])
    config_name = verb if verb in ("evaluate", "translate") else "train"
    first = [re.sub(r"=glob\(table3/A\*\)", "=table3/A1", word) for word in words if word != "-m"]
    first = [re.sub(r"=([^\[(,]*),.*", r"=\1", word) for word in first]
    config = compose([word.replace("...", "x") for word in first], config_name)
    if config_name == "train":
        check(config)


def test_the_table_of_axes_lists_what_conf_holds():
    rows = dict(re.findall(r"^\| `([a-z/]+)` \| (.*?) \| `?\w", README, flags=re.MULTILINE))
    for group, values in rows.items():
        files = {path.stem for path in (shipped("conf") / group).glob("*.yaml")}
        assert set(re.findall(r"`(\w+)`", values)) == files, group
    axes = {f"model/{path.name}" for path in (shipped("conf") / "model").iterdir() if path.is_dir()} - {"model/init"}
    assert axes <= set(rows)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "experiments/table3/README.md"])
def test_every_file_that_a_document_links_to_is_there(document):
    folder = (ROOT / document).parent
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / document).read_text(encoding="utf-8")):
        assert target.startswith("https://") or (folder / target).exists(), target
