"""What a config may give to a part."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
from lightning import Trainer

from etude.config import schema
from etude.config.check import check
from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.config.schema import INSTEAD
from etude.config.signature import signature
from etude.errors import UserError


def test_the_flags_of_lightnings_trainer_are_all_known_and_no_others() -> None:
    flags = {*inspect.signature(Trainer).parameters}
    optional = {field.name for field in fields(schema.Trainer) if field.default is None}
    assert optional == flags - {*INSTEAD} - ({field.name for field in fields(schema.Trainer)} - optional)
    assert {*INSTEAD} <= flags


def test_what_the_code_gives_is_not_left_to_the_config() -> None:
    adamw, attention = signature("torch.optim.AdamW"), signature("etude.model.attention.MultiHeadAttention")
    assert "params" not in adamw.for_config(partial=True).keywords
    assert not {"scale", "backend", "is_cross"} & {*attention.for_config(partial=True).keywords}
    assert "T_max" in signature("torch.optim.lr_scheduler.CosineAnnealingLR").for_config(partial=True).keywords


def test_what_the_code_gives_is_refused_where_the_config_gives_it_too() -> None:
    with pytest.raises(UserError, match=r"optimizer\.params is not a key"):
        check(resolve(compose(["optimizer=adamw", "+optimizer.params=1"])))


@pytest.mark.parametrize(
    ("source", "keywords", "needed"),
    [
        ("def part(a, b=1, *, c): ...", ["a", "b", "c"], {"a", "c"}),
        ("class part:\n    def __init__(self, a: int, *rest, b: float = 1.0): ...", ["a", "b"], {"a"}),
        ("class Base:\n    def __init__(self, a): ...\nclass part(Base): ...", ["a"], {"a"}),
        ("def other(a, b): ...\npart = other", ["a", "b"], {"a", "b"}),
        ("from collections import OrderedDict\nclass part(OrderedDict): ...", [], set()),
        ("from torch.optim import SGD\nclass part(SGD): ...", [*signature("torch.optim.SGD").keywords], {"params"}),
        ("from typing import NamedTuple\nclass part(NamedTuple):\n    a: int\n    b: int = 1", ["a", "b"], {"a"}),
        (
            "import torch\nclass Logged: ...\nclass part(Logged, torch.optim.SGD): ...",
            [*signature("torch.optim.SGD").keywords],
            {"params"},
        ),
        (
            "from dataclasses import dataclass\n@dataclass\nclass Base:\n    a: int\n"
            "@dataclass\nclass part(Base):\n    b: int = 1",
            ["a", "b"],
            {"a"},
        ),
        (
            "from dataclasses import dataclass\nfrom typing import ClassVar\n@dataclass\nclass part:\n"
            "    mark: ClassVar[str] = '.'\n    a: int\n    b: int = 1",
            ["a", "b"],
            {"a"},
        ),
        (
            "from dataclasses import dataclass, field\n@dataclass\nclass part:\n"
            "    a: int = field()\n    b: list = field(default_factory=list)\n    c: int = field(init=False)",
            ["a", "b"],
            {"a"},
        ),
        (
            "from enum import Enum\nfrom typing import Literal\nclass Mode(Enum):\n    A = 1\n"
            "def part(mode: Literal[Mode.A]): ...",
            ["mode"],
            {"mode"},
        ),
        ("from functools import partial\npart = partial(int, base=2)", ["base"], set()),
    ],
)
def test_functions_classes_and_what_is_neither(
    source: str, keywords: list[str], needed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"parts_{abs(hash(source))}"
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    told = signature(f"{module}.part").for_config(partial=False)
    assert told.open == ("OrderedDict" in source or "partial(" in source)
    assert told.open or [*told.keywords] == keywords
    assert told.required == needed


@pytest.mark.parametrize(
    ("decorator", "left", "needed"),
    [("@dataclass", {"params", "lr"}, set()), ("@dataclass(kw_only=True)", {"params", "lr"}, {"params"})],
)
def test_what_the_code_gives_by_place_is_not_asked_of_the_config_of_a_dataclass_either(
    decorator: str, left: set[str], needed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"fields_{len(decorator)}"
    source = f"from dataclasses import dataclass\n{decorator}\nclass Part:\n    params: list\n    lr: float = 0.1\n"
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    told = signature(f"{module}.Part").for_config(partial=True)
    assert ({*told.keywords}, {*told.required}) == (left, needed)


def test_a_base_that_is_not_python_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_base.py").write_text("class Base:\n    def __init__(self:\n")
    (tmp_path / "on_broken.py").write_text("from broken_base import Base\nclass Part(Base): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"broken_base\.py, line 2: this is not Python"):
        signature("on_broken.Part")
