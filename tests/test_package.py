"""What a person gets who installs étude instead of cloning it."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMALL = ["data.train_pairs=300", "data.valid_pairs=8", "data.test_pairs=8", "data.vocab_size=300", "budget=smoke"]
SMALL += ["decoding.max_len_offset=5", "logger=none"]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, built from this checkout with what is installed here, and the wheel built from that."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def only_file(folder: Path, pattern: str) -> Path:
    [file] = folder.glob(pattern)
    return file


@pytest.mark.slow
def test_the_wheel_holds_code_config_studies_and_sweeps_and_no_tests(built):
    with zipfile.ZipFile(only_file(built, "*.whl")) as wheel:
        names = wheel.namelist()
        [entry_points] = [wheel.read(name).decode() for name in names if name.endswith("/entry_points.txt")]
    for name in (
        "etude/conf/train.yaml",
        "etude/experiments/table3/study.yaml",
        "etude/sweeps/table3.yaml",
        "etude/template/README.md",
        "etude/template/conf/model/attention/gated.yaml",
        "etude/data/grammar/lexicon.txt",
        "hydra_plugins/etude_studies.py",
    ):
        assert name in names
    assert not [name for name in names if name.startswith("tests/")]
    assert "hydra_plugins/__init__.py" not in names, "it would hide other projects' plugins"
    assert entry_points.split() == ["[console_scripts]", "etude", "=", "etude.cli.main:main"], "what pipx and uvx run"


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone")
def test_the_sdist_holds_the_whole_repository(built):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tarfile.open(only_file(built, "*.tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert [name for name in listed.split("\0") if name and (ROOT / name).exists() and name not in names] == []


@pytest.mark.slow
def test_an_sdist_installed_elsewhere_works_from_an_empty_folder(built, tmp_path):
    """As a wheel does, by the test of docs/extending.md.

    The environment is new; the heavy dependencies are lent to it through a .pth file instead of installed again.
    """
    environment = tmp_path / "venv"
    venv.create(environment)
    python, program = str(environment / "bin" / "python"), str(environment / "bin" / "etude")
    packages = only_file(environment, "lib/python*/site-packages")
    (packages / "lent.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    place = tmp_path / "empty"
    place.mkdir()
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"ETUDE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=place, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    alone = ["--no-deps", "--no-index", "--force-reinstall", "--no-build-isolation"]
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *alone, str(only_file(built, "*.tar.gz"))
    )
    where = Path(run(python, "-c", "import etude; print(etude.__file__)").strip())
    assert where.is_relative_to(environment), "the checkout was used instead of what was installed"
    sweep = Path(run(program, "sweep", "--path", "table3").strip())
    assert sweep.is_file()
    assert sweep.is_relative_to(environment)
    run(program, "init", "mine")
    place /= "mine"
    out = run(program, "train", "experiment=table3/A1", *SMALL)
    assert (place / out.splitlines()[0] / "result.json").is_file()
    run(program, "sweep", "mine", "experiment=mine/base,mine/gated", *SMALL)
    assert re.search(r"^gated.*\d", run(program, "report", "mine"), re.MULTILINE)
    run(program, "report", "mine", "--html", "mine.html")
    assert "gated" in (place / "mine.html").read_text(encoding="utf-8")
