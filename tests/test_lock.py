"""What is asked for fits together: the extras with each other, and constraints.txt with all of them."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [
    Requirement(text)
    for needed in (PROJECT["dependencies"], *EXTRAS.values())
    for text in needed
    if not text.startswith("etude[")  # other extras, whose requirements stand here too
]
LINES = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
LOCK = {canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in LINES)}


def test_the_lock_pins_names_to_public_versions_and_says_nothing_of_where_they_come_from():
    assert LOCK.keys() == {canonicalize_name(Requirement(line).name) for line in LINES}
    for line in LINES:
        pinned = Requirement(line)
        assert line == f"{pinned.name}{pinned.specifier}", "a plain name==version"
        assert "+" not in line, "torch==2.13.0+cpu would shut the builds for GPUs out; torch==2.13.0 is all of them"


def test_the_lock_pins_each_direct_dependency_as_pyproject_allows():
    for needed in DIRECT:
        assert LOCK[canonicalize_name(needed.name)] in needed.specifier, needed


def requirements_of(name: str) -> list[Requirement]:
    """What the distribution asks for here, without extras; nothing where it lies in another version than is pinned."""
    try:
        there = distribution(name)
    except PackageNotFoundError:
        return []
    asked = [Requirement(text) for text in there.requires or []] if there.version.split("+")[0] == LOCK[name] else []
    return [one for one in asked if not one.marker or one.marker.evaluate({"extra": ""})]


def test_what_is_pinned_fits_together_and_lacks_nothing():
    asked = [(name, one) for name in LOCK for one in requirements_of(name)]
    if not asked:
        pytest.skip("nothing is installed in the version that is pinned")
    for name, one in asked:
        if not one.name.startswith(("nvidia", "cuda", "triton")):  # PyTorch's builds for GPUs pin these themselves
            assert LOCK.get(canonicalize_name(one.name), "nothing") in one.specifier, f"{name} needs {one}"


def pip(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--retries=0", "--timeout=20", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.fixture(scope="module")
def index():
    """An index of packages that pip reaches."""
    asked = pip("--ignore-installed", "--no-deps", "packaging")
    if asked.returncode:
        pytest.skip(f"pip reaches no index of packages: {asked.stderr.strip().splitlines()[-1]}")


@pytest.mark.slow
@pytest.mark.parametrize("versions", ["newest", "locked"])
def test_all_extras_are_resolved_in_one_environment(versions, index, tmp_path):
    """PyTorch is taken as it is installed: nobody fetches gigabytes to read what it asks for."""
    pins = [f"{name}=={pin}" for name, pin in LOCK.items() if name != "torch"] if versions == "locked" else []
    (tmp_path / "constraints.txt").write_text("\n".join([*pins, f"torch=={version('torch')}"]))
    told = tmp_path / "report.json"
    chosen = f"{ROOT}[{','.join(EXTRAS)}]"
    done = pip("--constraint", str(tmp_path / "constraints.txt"), "--report", str(told), "--no-build-isolation", chosen)
    assert done.returncode == 0, done.stderr
    fetched = {canonicalize_name(one["metadata"]["name"]) for one in json.loads(told.read_text())["install"]}
    assert "etude" in fetched
    assert "torch" not in fetched
