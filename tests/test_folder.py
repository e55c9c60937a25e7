"""The user's folder: its configs, studies, sweeps and modules count for every verb, before the shipped ones."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache, expand
from etude.config.resolve import resolve_valid
from etude.config.signature import signature
from etude.errors import UserError
from etude.launch.remote import RemoteRun
from etude.paths import CONFIG_DIR, find_file, folders_of, shipped
from etude.store.run_dir import RunDir
from etude.study import arm_names, study
from etude.study.axes import axes

WIDE = "# A wide beam.\ndefaults: [beam, _self_]\nbeam: 91\n"


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A folder as `etude init` writes it, where one stands, with a beam of its own."""
    with pytest.raises(SystemExit):
        main(["init", str(tmp_path)])
    capsys.readouterr()
    write(tmp_path / "conf/decoding/wide.yaml", WIDE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    for module in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        monkeypatch.delitem(sys.modules, module)
    for known in (arm_names._arm_names, study._read, signature):
        known.cache_clear()
    yield tmp_path
    for known in (arm_names._arm_names, study._read, signature):
        known.cache_clear()
    os.environ.pop(CONFIG_DIR, None)


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def etude(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a verb prints; it has to end well."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err
    return printed.out + printed.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("train --cfg job model/attention=gated", "mine.attention.Gated"),
        ("train --help", "dynamic_convolution, gated"),
        ("sweep --path own", "own.yaml"),
        ("plan mine", "attention.gate_bias=2"),
        ("plan own", "gated"),
        ("diff axes/base axes/attention-gated", "multi_head   gated"),
        ("show model/attention=gated", "Gated"),
        ("diff mine/base mine/open", "gate_bias"),
        ("prepare data=reversal data.train_pairs=60 data.valid_pairs=8 data.test_pairs=8", "20 subwords"),
        ("evaluate --cfg job run=x decoding=wide", "beam: 91"),
        ("translate --cfg job run=x decoding=wide", "beam: 91"),
        ("translate --help", "mine to ask"),
        ("status", "no runs"),
        ("report mine", "no finished run of mine"),
    ],
)
def test_every_verb_finds_what_lies_in_the_folder(words, told, folder, capsys, monkeypatch):
    monkeypatch.setenv("ETUDE_CACHE", str(folder / "cache"))
    write(folder / "sweeps/own.yaml", "method: grid\nparameters: {experiment: {values: [mine/gated]}}\n")
    ours = (shipped("conf") / "translate.yaml").read_text(encoding="utf-8")
    write(folder / "conf/translate.yaml", ours.replace("defaults:", "# mine to ask\ndefaults:", 1))
    (folder / "runs").mkdir()
    with pytest.raises(SystemExit):
        main(words.split())
    printed = capsys.readouterr()
    assert told in printed.out + printed.err


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        *((flag, "train --cfg job decoding=other") for flag in ("-cd ", "--config-dir ", "--config-dir=", "-cd=")),
        ("-cd ", "prepare --cfg job decoding=other"),
        ("-cd ", "evaluate --cfg job run=x decoding=other"),
        ("-cd ", "translate --cfg job run=x decoding=other"),
        ("-cd ", "diff decoding=beam decoding=other"),
    ],
)
def test_a_folder_behind_cd_comes_first_for_every_verb(flag, words, folder, capsys):
    write(folder / "conf/decoding/other.yaml", WIDE)
    write(folder / "elsewhere/decoding/other.yaml", WIDE.replace("91", "77"))
    verb, *rest = words.split()
    assert re.search(r"\b77\b", etude(capsys, verb, *f"{flag}elsewhere".split(), *rest))
    assert folders_of("conf")[0] == folder / "elsewhere"
    assert re.search(r"\b91\b", etude(capsys, verb, *rest))


def test_a_folder_behind_cd_that_is_not_there_is_told(folder, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["plan", "-cd", "nowhere"])
    assert ended.value.code == 2
    assert "-cd nowhere: name a folder of configs" in capsys.readouterr().err


def test_a_file_of_the_folder_stands_in_for_the_shipped_one_of_its_name(folder):
    write(folder / "conf/decoding/beam.yaml", (shipped("conf") / "decoding/beam.yaml").read_text() + "# mine\n")
    write(folder / "conf/budget/smoke.yaml", "# Mine.\ndefaults: [pocket, _self_]\nmax_steps: 3\n")
    assert find_file("conf", "decoding/beam.yaml").is_relative_to(folder)
    assert find_file("conf", "train.yaml") == shipped("conf") / "train.yaml"
    assert compose(["budget=smoke"]).budget.max_steps == 3


def test_a_group_of_the_folder_is_an_axis_and_its_values_are_globbed(folder):
    [attention] = [axis for axis in axes() if axis.group == "model/attention"]
    assert attention.values["gated"] == "Multi-head attention behind a gate."
    assert ["decoding=wide"] in expand(["decoding=glob(*)"])


def test_arms_of_the_folder_share_a_composition_that_is_the_same_config(folder):
    asked = []

    def counting(overrides):
        asked.append(overrides)
        return compose(overrides)

    configs = ConfigCache(counting)
    for seed in ("1", "2"):
        overrides = ["experiment=mine/gated", f"seed={seed}"]
        assert configs.resolve(overrides).config == resolve_valid(compose(overrides))
    assert len(asked) == 1


def test_devices_of_the_folder_are_added_to_the_shipped_ones(folder, capsys):
    write(folder / "conf/devices.yaml", "abacus: {full: 1.0e-9, half: 1.0e-9, share: 1, price: 0.1}\n")
    assert "On abacus" in etude(capsys, "plan", "device=abacus")
    assert "On a100" in etude(capsys, "plan", "device=a100")


LIBRARIES = ("torch", "yaml", "hydra", "numpy", "random", "etude")


def test_no_file_of_the_folder_hides_a_library_from_a_verb_or_from_the_process_of_a_run(folder):
    for name in LIBRARIES[:-1]:
        write(folder / f"{name}.py", "raise SystemExit('the wrong file')\n")
    for words in (["etude", "show"], ["etude.training.run"]):
        environment = os.environ | ({"PYTHONSAFEPATH": "1"} if "training" in words[0] else {})
        program = [sys.executable, "-m", *words] if "training" in words[0] else [sys.executable, "-c", SHOW]
        done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True)
        assert "wrong" not in done.stdout + done.stderr
    assert "usage: python -m etude.training.run" in done.stderr


SHOW = "import sys; sys.path.remove(''); from etude.cli.main import main; main(['show'])"  # as the installed program


@pytest.mark.parametrize("target", ["random.Window", "yaml.Attention", "torch.mine.Window", "time.Never"])
def test_a_module_that_a_library_has_the_name_of_is_told(target, folder):
    name = target.partition(".")[0]
    write(folder / f"{name}.py", "class Window: ...\n")
    with pytest.raises(UserError) as told:
        resolve_valid(compose([f"model.attention._target_={target}"]))
    assert f"{folder / name}.py is not imported" in str(told.value)
    assert str(told.value).endswith("has its name: rename yours")


def attention(folder: Path, text: str) -> dict:
    write(folder / "mine/other.py", text)
    return resolve_valid(compose(["+model.attention.reach=2", "model.attention._target_=mine.other.Window"]))


HEAD = "class Window:\n    def __init__(self, scale, backend, is_cross, *, d_model, heads, d_k, d_v, bias, "


def test_a_module_that_does_not_import_is_told_with_its_file_and_line(folder):
    write(folder / "mine/other.py", "\nimport nothing_like_this\nclass Window(nothing_like_this.Part): ...\n")
    with pytest.raises(UserError, match=r"mine/other.py, line 2: No module named 'nothing_like_this'"):
        resolve_valid(compose(["model.attention._target_=mine.other.Window"]))


def test_a_module_that_is_no_python_is_told_with_its_line(folder):
    with pytest.raises(UserError, match=r"mine/other.py, line 2: this is not Python"):
        attention(folder, "class Window:\n  def\n")


def test_a_class_whose_argument_is_missing_is_told(folder):
    with pytest.raises(UserError, match=r"model.attention.window is missing: mine.other.Window needs it"):
        attention(folder, HEAD + "reach, window): ...\n")


def test_an_argument_that_a_class_does_not_take_is_told_with_the_class_and_the_nearest(folder):
    told = r"reach is not a key of model.attention, for mine.other.Window does not take it; did you mean reaches\?"
    with pytest.raises(UserError, match=told):
        attention(folder, HEAD + "reaches=1): ...\n")


@pytest.mark.parametrize("file", ["conf/data/reversal.yaml", "conf/train.yaml"])
def test_a_config_that_is_no_yaml_is_told_with_its_line(file, folder):
    write(folder / file, "# Mine.\nseed: [1\n")
    with pytest.raises(UserError, match=rf"{file}, line 3: this is not YAML: expected ',' or '\]'"):
        compose(["data=reversal"])


def test_a_run_on_another_machine_works_in_the_folder_where_its_sweep_was_typed(folder, monkeypatch):
    run = folder / "runs/single/base/seed1-0"
    write(run / "config.yaml", "choices: {}\n")
    sent = pickle.dumps(RemoteRun(RunDir(run), 1, command=says_where))
    monkeypatch.chdir("/")
    pickle.loads(sent)()
    assert (run / "log.txt").read_text() == f"{folder} True\n"


def says_where(run: RunDir) -> list[str]:
    return [sys.executable, "-c", "import os, sys; print(os.getcwd(), sys.flags.safe_path)"]
