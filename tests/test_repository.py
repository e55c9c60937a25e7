"""What stands around the code says what is true of it."""

import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from etude import __version__

ROOT = Path(__file__).parents[1]


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_ci_runs_what_every_change_must_pass_on_supported_pythons():
    [job] = read(".github/workflows/ci.yml")["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run", "make docs"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    supported = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    assert all(f"{version}.0" in supported for version in job["strategy"]["matrix"]["python"])


@pytest.mark.parametrize("template", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda f: f.stem)
def test_whoever_writes_an_issue_is_asked_what_the_doctor_says(template):
    told = yaml.safe_load(template.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= told.keys()
    assert "etude doctor" in [part["attributes"]["label"] for part in told["body"]]


def test_the_citation_is_of_this_version():
    told = read("CITATION.cff")
    assert told["version"] == __version__
    assert {"cff-version", "message", "title", "authors", "license"} <= told.keys()


CONTAINERS = {"Dockerfile": r"^COPY (.+) \S+$", "etude.def": r"^    (\S+) /usr/src/etude/\S+$"}


@pytest.mark.parametrize(("recipe", "copied"), CONTAINERS.items(), ids=CONTAINERS.keys())
def test_a_container_has_all_that_the_wheel_is_built_from_and_the_versions_that_were_tested(recipe, copied):
    text = (ROOT / recipe).read_text(encoding="utf-8")
    names = {name for line in re.findall(copied, text, re.MULTILINE) for name in line.split()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        "src",
        "pyproject.toml",
        "constraints.txt",
        project["project"]["readme"],
        *project["project"]["license-files"],
    }
    assert names == needed | wheel["force-include"].keys()
    assert all((ROOT / name).exists() for name in names)
    [python] = re.findall(r"python:([\d.]+)-slim", text)
    assert f"{python}.0" in SpecifierSet(project["project"]["requires-python"])
    [extras] = re.findall(r"-c /usr/src/etude/constraints.txt \"/usr/src/etude\[([\w,-]+)\]", text)
    assert {*extras.split(",")} <= project["project"]["optional-dependencies"].keys()


def test_no_file_of_the_code_is_above_250_lines():
    files = [file for kind in ("py", "js", "css", "html") for file in (ROOT / "src").rglob(f"*.{kind}")]
    lines = {str(file): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {name: count for name, count in lines.items() if count > 250} == {}
