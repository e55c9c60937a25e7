"""The documents keep their promises: commands that exist and run, values that exist, files that exist.

`make` and `pip` lines are run by whoever runs this: CI calls `make check` and `make test`, and they install.
"""

import ast
import os
import re
import shlex
import subprocess
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from tests import warm

from etude.cli.verbs import VERBS
from etude.config.check import check
from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.search.sweep_file import planned_runs, sweep_overrides
from etude.study.study import find_study, load_study, study_names
from etude.yaml_file import read_yaml

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ["README.md", "CONTRIBUTING.md", "sweeps/README.md"]
PAGES += sorted(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md"))
FOLLOWED = ["docs/extending.md", "docs/tasks.md"]  # to the letter, by tests of their own
TRAINED = ["README.md", "CONTRIBUTING.md", "docs/study.md"]  # the other pages' commands are composed
MULTI30K = "path/to/multi30k"  # of a command that is typed only where it is
BLOCK = re.compile(
    r"(?:`(?P<file>[\w./]+)`:\n\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", flags=re.MULTILINE | re.DOTALL
)


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    """The lines of the fenced blocks that a person would type; comments, files and what stands before étude cut off."""
    blocks = [block["text"].replace("\\\n", "") for block in BLOCK.finditer(text) if block["language"] in ("", "bash")]
    lines = [
        re.split(r"   #| [<>] ", line)[0].strip().removesuffix(" &") for block in blocks for line in block.splitlines()
    ]
    lines = [re.sub(r"^(ssh \w+ |[A-Z_]+=\S+ |\.venv/bin/)+", "", line) for line in lines]
    return [line for line in lines if re.match(r"(etude|make|pip|echo) ", line)]


def etude_lines(document: str) -> list[str]:
    return [line for line in commands(read(document)) if re.match(r"(etude|echo .*\| etude) ", line)]


COMPOSED = dict.fromkeys(
    line.split("| ")[-1]
    for page in PAGES
    if page not in FOLLOWED
    for line in etude_lines(page)
    if page not in TRAINED or MULTI30K in line
)  # each once


def test_the_readme_has_at_most_150_lines_and_opens_with_the_two_commands():
    assert len(README.splitlines()) <= 150
    assert [line.split()[1] for line in commands(README)[:2]] == ["table3", "test"]


@pytest.mark.parametrize(
    "command", sorted({line for page in PAGES for line in commands(read(page)) if line.startswith("make")})
)
def test_every_make_target_of_the_documents_is_there(command):
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("command", COMPOSED)
def test_every_command_of_the_documents_is_understood(command, own_study, monkeypatch):
    monkeypatch.chdir(own_study)
    program, verb, *words = shlex.split(command)
    assert program == "etude"
    assert verb in VERBS
    if verb in ("init", "doctor") or "--path" in words:
        return
    if verb == "diff":
        assert {*words} <= {*known_arms()}
        return
    if verb in ("report", "results") and words[0].endswith(".yaml"):
        assert planned_runs(words[0], [word for word in words[1:] if "=" in word])
        return
    if verb in ("report", "results", "clean", "status"):
        assert words[0] in [*study_names(), "single"]
        return
    if verb == "sweep" or (verb == "plan" and "=" not in words[0]):
        words = sweep_overrides(words[0], words[1:])
    config_name = verb if verb in ("evaluate", "translate", "generate", "analyze") else "train"
    words = [
        word for word in words if word not in ("-m", "--cfg", "job", "--verify") and not word.startswith("device=")
    ]
    first = [re.sub(r"=glob\((\w+)/A?\*\)", lambda found: f"={first_arm(found[1])}", word) for word in words]
    first = [re.sub(r"=([^\[({,]*),.*", r"=\1", word) for word in first]
    first = [word for word in first if not re.search(r"=(tag|interval)\(", word)]  # which a search draws from
    first = [re.sub("^init_from=.*", "init_from=null", word) for word in first]  # for which there must be a run
    config = compose([word.replace("...", "x") for word in first], config_name)
    if config_name == "train":
        check(resolve(config))


def first_arm(study: str) -> str:
    return f"{study}/{next(iter(load_study(study).arms))}"


@pytest.fixture(scope="module")
def own_study(tmp_path_factory) -> Path:
    """A folder with the files that a document says to write."""
    folder = tmp_path_factory.mktemp("own")
    for block in BLOCK.finditer(read("docs/study.md")):
        write_file(folder, block)
    (folder / "sweeps").symlink_to(ROOT / "sweeps")
    return folder


def write_file(folder: Path, block: re.Match[str]) -> None:
    """Put a block where the line above it says."""
    if block["file"]:
        (folder / block["file"]).parent.mkdir(parents=True, exist_ok=True)
        (folder / block["file"]).write_text(block["text"], encoding="utf-8")


@pytest.mark.parametrize(
    "block", [block["text"] for page in PAGES for block in BLOCK.finditer(read(page)) if block["language"] == "python"]
)
def test_what_python_in_a_document_imports_of_etude_is_there(block):
    for statement in ast.walk(ast.parse(block)):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("etude."):
            module = import_module(statement.module)
            for name in statement.names:  # a module within a package has to be imported itself
                assert hasattr(module, name.name) or import_module(f"{statement.module}.{name.name}")


def test_every_file_that_a_document_links_to_is_there():
    folders = (".", "docs", "docs/api", "experiments/*", "sweeps", "benchmarks")
    for document in sorted(file for folder in folders for file in ROOT.glob(f"{folder}/*.md")):
        for target in re.findall(r"\]\(([^)#\s]+)[)#]", document.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (document.parent / target).exists(), f"{document}: {target}"


def cut_down(folder: Path, text: str) -> None:
    """Every study again in `folder`, with its baseline and the arms that `text` names, or one more."""
    for study in map(load_study, study_names()):
        others = [arm for arm in study.arms if arm != study.baseline]
        named = [arm for arm in others if re.search(rf"{study.name}/{re.escape(arm)}\b", text)] or others[:1]
        arms = {arm: study.arms[arm] for arm in (study.baseline, *named)}
        own = {"title": study.title, "baseline": study.baseline, "arms": arms, "columns": study.columns}
        if study.tune:
            own |= {"tune": {key: values[:2] for key, values in study.tune.items()}, "pilots": study.pilots[:1]}
        if metrics := read_yaml(find_study(study.name) / "study.yaml").get("metrics"):
            own |= {"metrics": metrics}
        (folder / study.name).mkdir(parents=True)
        (folder / study.name / "study.yaml").write_text(yaml.safe_dump(own, allow_unicode=True, sort_keys=False))
        if study.paper.arms:
            paper = asdict(study.paper) | {"arms": {arm: study.paper.arms.get(arm, {}) for arm in arms}}
            (folder / study.name / "paper.yaml").write_text(yaml.safe_dump(paper, allow_unicode=True))


def smallest(verb: str, words: list[str]) -> list[str]:
    """What is appended to a command so that it is done in seconds."""
    own_text = "data=files" in words
    pairs = ["data.holdout=8"] if own_text else [f"data.{split}_pairs={n}" for split, n in PAIRS.items()]
    training = [
        "budget=smoke",
        "logger=none",
        "decoding.max_len_offset=5",
        f"data.vocab_size={40 if own_text else 300}",
    ]
    chosen = []
    of_sweep = verb == "report" and words[0].endswith(".yaml")  # it takes the words of the sweep itself
    if verb in ("sweep", "plan") or of_sweep:
        [arms] = [word for word in sweep_overrides(words[0]) if word.startswith("experiment=")]
        there = [arm for arm in arms.removeprefix("experiment=").split(",") if arm in known_arms()]
        chosen = [f"experiment={','.join(there)}", *["run_cap=1"] * any("run_cap=" in word for word in words)]
    one = ["seed=1"] * any(word.startswith("seed=") for word in words)
    more = {
        "train": [*training, *pairs],
        "sweep": [*training, *pairs, *chosen, *one],
        "plan": chosen,
        "report": [*training, *pairs, *chosen] if of_sweep else [],
        "prepare": ["data.vocab_size=300"],
    }
    return more.get(verb, [])


PAIRS = {"train": 300, "valid": 8, "test": 8}
PROMISED = {  # of what is printed
    "train": r"test perplexity \d.* BLEU \d|finished in .* \((\d+) of \1\)",
    "sweep": r"finished in .* \((\d+) of \1\)",
    "analyze": r"analysis.json\n",
    "evaluate": r"^test perplexity \d.* BLEU \d",
    "report": r"^base .*\d\.\d(?s:.*)^A1 .*\d\.\d|^post .*\d\.\d(?s:.*)^pre_none",
    "translate": r"\A.*\n\Z",  # one line, blank from a model that has learned nothing yet
    "prepare": r"^300 subwords\ntrain +29,?000 pairs",
    "status": "finished",
    "plan": r"params(?s:.*)^ (base|post) ",
    "show": "parameters",
    "diff": "parameters|no difference",
}


def known_arms() -> list[str]:
    """The arms of all studies, as they are where one stands."""
    return [f"{study}/{arm}" for study in study_names() for arm in load_study(study).arms]


def typed(line: str, folder: Path) -> None:
    """Type a command of a document, made small, into a shell in `folder`."""
    for prefix in re.findall(r"(runs/\S*)\.\.\.", line):
        runs = sorted(folder.glob("runs/*/*/*/result.json"), key=lambda file: file.stat().st_mtime)
        line = line.replace(f"{prefix}...", next(str(f.parent) for f in runs if f"/{prefix}" in str(f)))
    _, verb, *words = shlex.split(line.split("| ")[-1])
    shell = f'set -o pipefail; etude() {{ {warm.python()} -m etude "$@"; }}; '
    environment = os.environ | {"ETUDE_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = f"{shell} {line} {shlex.join(smallest(verb, words))}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, env=environment, check=False, timeout=300
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    printed = done.stdout + done.stderr
    written = re.search(r"--(?:html|latex|csv) (\S+)", line)
    if written:
        assert (folder / written[1]).stat().st_size > 0
        return
    assert re.search(PROMISED.get(verb, "."), printed, flags=re.MULTILINE), f"{line}\n{printed}"


@pytest.mark.slow(minutes=2)
def test_every_command_of_the_documents_runs_as_it_is_typed(tmp_path, monkeypatch, capsys):
    """In order, in an empty folder: as typed, with overrides behind it that make it small."""
    lines = list(dict.fromkeys(line for document in TRAINED for line in etude_lines(document)))
    cut_down(tmp_path / "experiments", "\n".join(lines))
    blocks = [block for document in TRAINED for block in BLOCK.finditer(read(document))]
    for block in blocks:
        if "study.yaml" in (block["file"] or ""):
            write_file(tmp_path, block)
    monkeypatch.chdir(tmp_path)
    for language in ("en", "de"):
        (tmp_path / f"my.{language}").write_text("".join(f"{n * 7919:o} {n * n:o}\n" for n in range(300)))
    for line in lines:
        if MULTI30K not in line:
            typed(line, tmp_path)
    for block in blocks:
        if block["language"] == "python" and "results(" in block["text"]:
            exec(block["text"], {})
            assert re.search(r"^pre_none [\d.]+ None$", capsys.readouterr().out, re.MULTILINE)
    first = min(tmp_path.glob("runs/*/*/*/result.json"), key=lambda file: file.stat().st_mtime).parent
    listing = README.split("seed<k>-<hash>/\n")[1].split("```")[0]
    promised = re.findall(r"[\w./]+\.(?:yaml|json|txt|csv|ckpt)", listing)
    assert len(promised) > 5
    assert not [name for name in promised if not (first / name).is_file()]


@pytest.mark.slow
def test_the_command_on_multi30k_runs_as_it_is_typed(tmp_path, monkeypatch, multi30k_root):
    monkeypatch.chdir(tmp_path)
    for line in etude_lines("README.md"):
        if MULTI30K in line:
            typed(line.replace(MULTI30K, shlex.quote(str(multi30k_root))), tmp_path)
