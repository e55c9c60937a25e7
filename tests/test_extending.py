"""What a person gets who installs étude and does not clone it; docs/extending.md, typed there from top to bottom."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from tests import warm

from etude.paths import shipped

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
STEP = re.compile(r"(?:`(?P<file>[\w./]+)`:\n\n)?^```(?P<language>\w*)\n(?P<block>.*?)^```$", re.MULTILINE | re.DOTALL)
SMALL = "data.train_pairs=300 data.valid_pairs=8 data.test_pairs=8 data.vocab_size=300 budget=smoke logger=none"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, built from this checkout with what is installed here, and the wheel built from that."""
    folder = tmp_path_factory.mktemp("user")
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


def environment_in(folder: Path) -> Path:
    """An environment that is lent what is installed here, but for étude."""
    venv.create(folder / "venv", with_pip=True)
    packages = only_file(folder / "venv", "lib/python*/site-packages")
    (packages / "lent.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return folder / "venv" / "bin"


@pytest.fixture(scope="module")
def typed(built):
    """Types commands into one shell after the other, each in the folder where the last one ended."""
    folder = built
    programs = environment_in(folder)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PATH": f"{folder / 'bin'}:{programs}:{environment['PATH']}", "ETUDE_CACHE": str(folder / "cache")}
    environment |= {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_FORCE_REINSTALL": "1", "OMP_NUM_THREADS": "1"}
    here = folder

    def fork_of_the_wheel() -> Path:
        with pytest.MonkeyPatch.context() as patched:
            patched.delenv("PYTHONPATH", raising=False)
            fork = warm.python(str(programs / "python"))
        assert Path(fork.with_name("etude").read_text()).is_relative_to(folder / "venv")
        return fork

    def typed(command: str) -> str:
        nonlocal here
        # By the first plan étude is installed, and has been started for real (etude init).
        if warm.LINUX and command.startswith("etude plan") and not (folder / "bin").exists():
            (folder / "bin").mkdir()
            (folder / "bin" / "etude").write_text(f'#!/bin/sh\nexec {fork_of_the_wheel()} -m etude "$@"\n')
            (folder / "bin" / "etude").chmod(0o755)
        done = subprocess.run(
            ["bash", "-c", f"set -e; {command}; pwd"], cwd=here, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        *lines, last = done.stdout.splitlines()
        here = Path(last)
        return "\n".join([*lines, done.stderr])

    typed.write = lambda file, text: (  # type: ignore[attr-defined]
        (here / file).parent.mkdir(parents=True, exist_ok=True),
        (here / file).write_text(text, encoding="utf-8"),
    )
    typed.folder = folder  # type: ignore[attr-defined]
    return typed


@pytest.fixture(scope="module")
def done(typed) -> dict[str, str]:
    """What every command of the document printed, its files written on the way."""
    printed: dict[str, str] = {}
    for step in STEP.finditer(DOCUMENT):
        if step["language"]:
            assert step["file"], f"where is this to be written?\n{step['block']}"
            typed.write(step["file"], step["block"])
            continue
        for line in step["block"].splitlines():
            if re.match(r"(pip|etude|cd|python) ", line):
                printed[line] = typed(line)
    return printed


@pytest.mark.slow(minutes=1)
def test_the_tutorial_works_as_typed(done, typed):
    assert re.search(r"^gated.*\d", done["etude report mine"], re.MULTILINE)
    assert re.search(r"^sign.*\d", done["etude report signs"], re.MULTILINE)
    assert "3 finished" in done["etude status mine"]
    assert len((typed.folder / "work" / "signs.csv").read_text().splitlines()) == 3
    assert "gate_bias" in done["etude diff mine/base mine/gated"]
    assert "gated" in done["etude show model/attention=gated"]
    assert "GRU" in done["etude show model=gru"]
    assert len(list((typed.folder / "work" / "runs").glob("*/*/*/result.json"))) == 3 + 2 + 2 + 2


@pytest.mark.slow
def test_what_was_run_is_the_wheel_and_nothing_was_written_into_it(done, typed):
    where = Path(typed("python -P -c 'import etude; print(etude.__file__)'").strip())
    assert where.is_relative_to(typed.folder / "venv"), "the checkout was used instead of the wheel"
    assert not list(where.parent.rglob("sign_sgd.yaml"))
    sweep = Path(typed("etude sweep --path table3").strip())
    assert sweep.is_file()
    assert sweep.is_relative_to(typed.folder / "venv")


@pytest.mark.slow
def test_a_shipped_arm_is_trained_by_the_program_that_pip_installed(done, typed):
    printed = typed(f"{typed.folder}/venv/bin/etude train experiment=table3/A1 {SMALL} decoding.max_len_offset=5")
    run = printed.splitlines()[0]
    assert (typed.folder / "work" / run / "result.json").is_file()


@pytest.mark.slow
def test_the_commands_of_the_folder_s_own_readme_work_as_typed(done, typed):
    """With one seed and little budget."""
    readme = (shipped("template") / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        command = line.split("   #")[0].strip()
        small = ["budget=smoke"] * bool(re.match(r"etude (plan|sweep|train)", command))
        one = ["seed=1"] * ("seed=" in command)
        printed = typed(" ".join([command, *small, *one]))
        assert "Traceback" not in printed
    assert (typed.folder / "work" / "mine.html").stat().st_size > 0
