"""Whatever is typed behind a verb is done, or refused in a sentence: never a traceback."""

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.cli.main import main

READING = ["plan", "show", "diff", "status", "results", "report", "clean", "evaluate", "translate", "analyze", "export"]
TRAINING = ["train", "sweep"]  # which are given a budget of nothing, so that they refuse whatever else is right
KEYS = """
    model.heads model.d_k model/position model/norm model position data data.root budget seed scale study
    runs_dir run device split decoding.beam decoding experiment callbacks logger trainer.devices metrics
    beams sentences config arm hydra.launcher.workers hydra/launcher hydra.sweep.dir
"""
VALUES = ["", "1", "-1", "x", "1,2", "[1,2]", "[", "]", "{a:1}", "{", "'", '"', "${x}", "${", "${oc.env:NOPE}", "null"]
VALUES += [
    "???",
    "true",
    "1e400",
    "nan",
    "glob(*)",
    "range(1,3)",
    "choice(1,2)",
    "ü ☃",
    "a b",
    "\\",
    "$",
    "..",
    ",",
    "~",
]
FLAGS = """
    -m --multirun --cfg --cfg=job -c --resolve --info --package -p -s -sc -cn --config-name --config-path=x --run --json
    --html --csv --markdown --wandb --serve --baseline --help -h --hydra-help --version --nope - --
"""
NAMES = ["table3", "table3/A1", "table3/", "/A1", "modern/base", "nope", "sweeps/table3.yaml", ".", "", " ", "ü"]

OVERRIDES = st.builds(
    "{}{}={}".format, st.sampled_from(["", "+", "++", "~"]), st.sampled_from(KEYS.split()), st.sampled_from(VALUES)
)
WORDS = (
    OVERRIDES | st.sampled_from([*FLAGS.split(), *NAMES, "~model", "+", "=", "==", "a=b=c", "~"]) | st.text(max_size=6)
)


def typed(words: list[str]) -> tuple[object, str]:
    """The exit status of `etude WORDS`, and what it told on standard error."""
    told, before = io.StringIO(), sys.argv
    sys.argv = ["etude", *words]
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"a line\n"))
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
            main(words)
    except SystemExit as end:
        return end.code, told.getvalue()
    finally:
        sys.argv, sys.stdin = before, sys.__stdin__
    raise AssertionError("a verb ends by exiting")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train", "--seed", "2"], "--seed is not an option of `etude train`: write keys without dashes, seed=2"),
        (["train", "--seed", "model.heads=2"], "--seed is not an option of `etude train`: .* seed=..."),
        (["evaluate", "--run=DIR"], "--run=DIR is not an option of `etude evaluate`: .* run=DIR"),
        (
            ["prepare", "--data.source=my.en", "data.target=my.de"],
            "--data.source=my.en is not an option of `etude",
        ),
        (["train", "budget=20"], "budget=20: there is no '20' in the group budget; choose one of full, pocket"),
        (["train", "model/scale=nan"], "model/scale=nan: there is no 'nan' in the group model/scale"),
        (["train", "table3"], "table3 is a study: `etude sweep table3` runs all of its arms"),
        (["sweep", "table3", "arm=A1"], "arm=... would give all arms one name: `etude train experiment=STUDY/ARM`"),
        (["sweep", "modern", "study=mine"], "study=... would give all arms one name"),
        (["train", "--cfg", "jobs"], "--cfg shows the config: say --cfg job, --cfg hydra or --cfg all"),
        (["train", "-c"], "--cfg shows the config: say --cfg job, --cfg hydra or --cfg all"),
        (["train", "-p", "model"], "--package goes with --cfg, as in --cfg job --package model: leave it out"),
        (["train", "--experimental-rerun", "config.pickle"], "--experimental-rerun is not an option of `etude train`"),
        (["train", "-s"], "tab completion is there for bash, fish and zsh, as in etude -sc install=bash"),
        (["-sc", "install=tcsh"], "tab completion is there for bash, fish and zsh, as in etude -sc install=bash"),
        (["train", f"hydra.run.dir={Path(__file__)}"], ".*test_odd_words.py: File exists; move it out of the way"),
    ],
)
def test_what_hydra_would_answer_is_answered_in_one_sentence(words: list[str], told: str, elsewhere: Path) -> None:
    with contextlib.chdir(elsewhere):
        status, said = typed(words)
    assert status == 2
    assert re.match(f"etude: {told}", said)
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("torn", "words", "told"),
    [
        ("feedforward/torn", [], "model/decoder/alignment belongs to model/decoder=recurrent: choose that too"),
        ("norm/layer", ["model/norm=rms"], ".*layer.yaml, line 1: this is not YAML: found character"),
    ],
)
def test_a_mistake_in_another_file_of_the_users_does_not_hide_the_sentence(
    torn: str, words: list[str], told: str, tmp_path: Path
) -> None:
    file = tmp_path / f"conf/model/{torn}.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("\tfactor: 1\n")
    with contextlib.chdir(tmp_path):
        status, said = typed(["train", "model/decoder/alignment=dot", *words])
    assert status == 2
    assert re.match(f"etude: {told}", said)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_words_are_done_or_refused_in_a_sentence(elsewhere: Path, data: st.DataObject) -> None:
    verb = data.draw(st.sampled_from(READING + TRAINING), label="verb")
    words = data.draw(st.lists(WORDS, max_size=3), label="words")
    nothing = ["budget.max_steps=0"] * 2 if verb in TRAINING else []  # a flag may take one as its value
    with contextlib.chdir(elsewhere):
        status, told = typed([verb, *words, *nothing])
    assert status in (0, 1, 2), told
    assert "Traceback" not in told
    if status == 2:
        assert told.strip()
