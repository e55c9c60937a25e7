"""Whatever stands in a config is accepted, or refused in a sentence that names it: never another exception."""

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.config import parts
from etude.config.check import check
from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache
from etude.config.explain import explain
from etude.config.quoting import quote
from etude.config.resolve import resolve_valid
from etude.config.rules import check_choices, check_rules
from etude.errors import UserError
from etude.paths import shipped
from etude.study.study import load_study, value_at
from etude.tasks import build
from etude.training.optimizer import make_optimizer

Config = dict[str, Any]

NUMBERS = [0, -1, 1, 3, 2**63, 10**25, 0.5, -0.5, 1e300, float("inf"), float("nan")]
WORDS = ["", " ", "x", "ü ☃", "a: b", "../..", "???", "${seed}", "${nope}", "${", "${width:x}", "${oc.env:NOPE}"]
ANYTHING = st.recursive(
    st.sampled_from([None, True, False, *NUMBERS, *WORDS]) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "_target_"]), inner, max_size=2),
    max_leaves=3,
)
BASES = [resolve_valid(compose(words)) for words in ([], ["experiment=axes/decoder-recurrent"], ["optimizer=adamw"])]


def keys_of(config: Config, path: str = "") -> list[str]:
    """Every dotted key, of sections too."""
    below = [keys_of(value, f"{path}{name}.") for name, value in config.items() if isinstance(value, dict)]
    return [f"{path}{name}" for name in config] + [key for keys in below for key in keys]


KEYS = [[key for key in keys_of(base) if not key.startswith("choices")] for base in BASES]


def check_all(config: Config) -> None:
    """Everything that is asked of a resolved config before it is trained."""
    check({name: value for name, value in config.items() if name != "choices"})
    check_rules(config)
    check_choices(config, [])


def refusal_of(asked: Callable[[], object]) -> str:
    """The sentence that refuses; nothing if it is accepted. Any error that has no sentence goes on."""
    try:
        asked()
    except Exception as error:
        told = explain(error)
        if told is None:
            raise
        return str(told)
    return ""


DERIVED = {
    "scale.width": "model.d_model",
    "scale.depth": "model.n_layers",
    "model.attention_dropout": "model.backend.dropout",
    "model.attention_bias": "model.attention.bias",
}  # what is worked out from a key, where that is what cannot be


def names(refusal: str, key: str) -> bool:
    """Whether a sentence tells where to look: the end of the key, what is worked out from it, or what it asks for."""
    end = key.rpartition(".")[2]
    return any(part in refusal for part in (end, DERIVED.get(key, end), "_target_", "config group", "scaled by"))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_value_of_any_key_is_accepted_or_refused_by_name(data: st.DataObject) -> None:
    base, keys = data.draw(st.sampled_from([*zip(BASES, KEYS, strict=True)]))
    key, value = data.draw(st.sampled_from(keys)), data.draw(ANYTHING)
    config = deepcopy(base)
    section, _, name = key.rpartition(".")
    (value_at(config, section) if section else config)[name] = value
    refusal = refusal_of(lambda: check_all(config))
    assert not refusal or names(refusal, key)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_value_that_is_typed_is_accepted_or_told_as_one_sentence(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([key for key in KEYS[0] if key != "choices"]))
    values = st.sampled_from([*WORDS, *NUMBERS, None, True]) | st.lists(st.sampled_from([1, None, "a"]), min_size=1)
    override = f"{key}={quote(data.draw(values))}"
    refusal = refusal_of(lambda: ConfigCache().resolve([override]))
    assert not refusal or names(refusal, key)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("optimizer._target_=''", r"optimizer\._target_ must name a class, .*, not ''"),
        ("optimizer._target_=3", r"optimizer\._target_ must name a class, such as package\.module\.Name, not 3"),
        ("model.norm._target_=[a]", r"model\.norm\._target_ must name a class"),
        ("model.norm._partial_=3", r"model\.norm\._partial_ must be true or false, not 3"),
        ("model.norm._partial_='${nope}'", r"model\.norm\._partial_ cannot be worked out"),
        ("optimizer.groups=3", r"optimizer\.groups must be a list of groups of parameters, not 3"),
        ("logger.wandb.artifacts=3", r"logger\.wandb\.artifacts must be a list, such as \[checkpoint\], not 3"),
        ("model.d_model='${width:x}'", r"model\.d_model|what is scaled by scale\.width must be a number"),
        ("scale.width=nan", r"scale\.width must be above 0 and finite, not nan"),
        ("scale.depth=0", r"scale\.depth must be above 0 and finite, not 0"),
        ("seed=99999999999999999999", r"seed must lie between"),
        ("model.attention.heads=-1", r"model\.attention\.heads must be at least 1, not -1"),
        ("decoding=[1,2]", "a config group takes the name of one of its files"),
        ("callbacks=[null]", "a config group takes the name of one of its files"),
        ("data='${'", "a config group takes the name of one of its files"),
        ("data='${seed}'", "a config group takes the name of one of its files"),
    ],
)
def test_what_is_no_value_of_its_key_is_told(override: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        ConfigCache().resolve([override])


def test_a_part_of_a_part_is_checked_like_one() -> None:
    with pytest.raises(UserError, match=r"model\.decoder\.alignment\.d_model must be a whole number, not 0\.5"):
        resolve_valid(compose(["experiment=axes/decoder-recurrent", "model.decoder.alignment.d_model=0.5"]))


def test_what_only_torch_can_refuse_is_one_sentence() -> None:
    config = resolve_valid(compose(["optimizer=adamw", "optimizer.betas=[3,3]"]))
    with pytest.raises(UserError, match=r"Invalid beta parameter at index 0: 3 \(torch\.optim\.AdamW\)"):
        make_optimizer(config["optimizer"], build.shapes(config).named_parameters())
    config = resolve_valid(compose([f"model.d_ff={2**62}"]))
    with pytest.raises(UserError, match="this model cannot be built"):
        build.shapes(config)


def test_a_mistake_in_a_class_that_is_not_torchs_keeps_its_traceback() -> None:
    with pytest.raises(TypeError):
        parts.make({"_target_": "tests.config.test_odd_values.Broken"})


class Broken:
    """A part of the user's with a mistake in it."""

    def __init__(self) -> None:
        len(3)  # type: ignore[arg-type]


CONF_FILES = {
    "bytes that are no text": (b"\xff\xfe", "is not UTF-8 text"),
    "zeros": (b"lr: 1\n\0\0", "special characters are not allowed"),
    "cut short": (b"a: [1,\n", "this is not YAML"),
    "nothing": (b"", "names no _target_"),
    "a list": (b"[1]", r"must be .*, not \[1\]; .* whose file holds keys with their values"),
    "a number for its defaults": (b"defaults: 3\n", "defaults must be a list"),
    "half an interpolation": (
        b"a: 1\nb: ${a\n",
        r"mine\.yaml, line 2: `\${` is never closed: write } after it",
    ),
    "a misspelt list": (b"a: 1\ndefault: [none]\n", r"mine\.yaml, line 2: default is not a key of .* under defaults:"),
}


@pytest.mark.parametrize("group", ["optimizer", "model/position"])
@pytest.mark.parametrize("kind", CONF_FILES)
def test_a_config_file_of_ones_own_that_is_damaged_is_told(
    kind: str, group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, told = CONF_FILES[kind]
    file = tmp_path / "conf" / group / "mine.yaml"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=told):
        resolve_valid(compose([f"{group}=mine"]))


def test_a_torn_file_is_told_where_a_group_is_chosen_that_it_would_bring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "conf" / "model" / "decoder" / "recurrent.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("defaults: [alignment: additive\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"recurrent\.yaml, line 2: this is not YAML"):
        compose(["model/decoder/alignment=dot"])


STUDIES = sorted(shipped("experiments").glob("*/paper.yaml"))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_study_file_with_anything_in_it_is_read_or_refused_with_its_name(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("study")
    paper = data.draw(st.sampled_from(STUDIES))
    texts = {name: paper.with_name(name).read_text(encoding="utf-8") for name in ("study.yaml", "paper.yaml")}
    damaged = data.draw(st.sampled_from([*texts]))
    content = yaml.safe_load(texts[damaged])
    key = data.draw(st.sampled_from([key for key in keys_of(content) if value_at(content, key) is not None]))
    section, _, name = key.rpartition(".")
    (value_at(content, section) if section else content)[name] = data.draw(ANYTHING)
    place = folder / "experiments" / "odd"
    place.mkdir(parents=True)
    for name, text in (texts | {damaged: yaml.safe_dump(content, sort_keys=False)}).items():
        (place / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        refusal = refusal_of(lambda: load_study("odd"))
    assert not refusal or re.search(r"(study|paper)\.yaml|measured, not trained", refusal)


def test_a_folder_where_a_study_file_should_be_is_no_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments" / "mine" / "study.yaml").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"there is no study 'mine': (?!did you mean mine)"):
        load_study("mine")
