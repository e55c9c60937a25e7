"""Reading YAML: mistakes are one sentence with the file and, where there is one, the line."""

from pathlib import Path

import pytest

from etude.errors import UserError
from etude.yaml_file import read_yaml


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a: 1\nb: 2\na: 3\n", ", line 3: a is in line 1 already"),
        (b"a:\n  b: 1\n  b: 1\n", ", line 3: b is in line 2 already"),
        (
            b"title: Heads: one\n",
            ", line 1: this is not YAML: mapping values are not allowed here; "
            "a text that contains a colon needs quotes",
        ),
        (b"a: [1\n", ", line 2: this is not YAML: expected ',' or ']'"),
        (b"a: &x\n  b: [1, *x]\n", ", line 1: this is not YAML: found unconstructable recursive node"),
        (b"&x [*x]\n", ", line 1: this is not YAML: found unconstructable recursive node"),
        (b"a: \xff\n", " is not UTF-8 text"),
        (b"a: 2026-02-30\n", ": this is not YAML: day is out of range for month"),
    ],
)
def test_a_mistake_is_one_sentence(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "some.yaml").write_bytes(content)
    with pytest.raises(UserError) as raised:
        read_yaml(tmp_path / "some.yaml")
    assert str(raised.value).startswith(f"{tmp_path / 'some.yaml'}{told}")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*none\.yaml: No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_an_alias_stands_for_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "some.yaml").write_text("a: &x [1, {b: 2}]\nc: *x\nd: &y {<<: {e: 1}, f: *x}\ng: *y\n")
    a = [1, {"b": 2}]
    assert read_yaml(tmp_path / "some.yaml") == {"a": a, "c": a, "d": {"e": 1, "f": a}, "g": {"e": 1, "f": a}}
