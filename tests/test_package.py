"""What a person gets who installs étude instead of cloning it."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from this checkout with what is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    [file] = folder.glob("*.whl")
    return file


@pytest.mark.slow
def test_the_wheel_holds_code_config_studies_and_sweeps_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
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


@pytest.mark.slow
def test_a_wheel_installed_elsewhere_trains_from_an_empty_folder(wheel, tmp_path):
    """The environment is new; the heavy dependencies are lent to it through a .pth file instead of installed again."""
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    [packages] = (environment / "lib").glob("python*/site-packages")
    lent = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "lent.pth").write_text("\n".join(lent))
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--force-reinstall",
        str(wheel),
    ]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables |= {"ETUDE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=empty, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = run(str(python), "-c", "import etude; print(etude.__file__)")
    assert where.startswith(str(environment)), "the checkout was used instead of the wheel"
    sweep = Path(run(str(environment / "bin" / "etude"), "sweep", "--path", "table3").strip())
    assert sweep.is_file()
    assert sweep.is_relative_to(environment)
    out = run(
        str(environment / "bin" / "etude"), "train", "experiment=table3/A1", "budget=smoke", "data.train_pairs=3000"
    )
    assert (empty / out.splitlines()[0] / "result.json").is_file()
