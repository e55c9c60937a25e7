"""Values as they were recorded: what no change of code may change unnoticed.

A value without a file is written, and its test fails once, so that somebody looks at the file and commits it. A change
on purpose deletes the file and makes it anew, in a commit that says which values changed and why.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

VALUES = Path(__file__).with_name("values")


def assert_as_recorded(name: str, found: Any, *, relative: float = 0.0) -> None:
    """Compare a value, made of mappings, lists, text and numbers, with the file of this name in `values`."""
    file = VALUES / f"{name}.json"
    found = json.loads(json.dumps(found))
    if not file.is_file():
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        pytest.fail(f"{file} was not there and has been written")
    expected, actual = dict(leaves(json.loads(file.read_text(encoding="utf-8")))), dict(leaves(found))
    differing = {
        key: (expected.get(key, "nothing"), actual.get(key, "nothing"))
        for key in expected | actual
        if key not in expected or key not in actual or not _equal(expected[key], actual[key], relative)
    }
    assert not differing, f"{len(differing)} of {len(expected)} differ from {file.name} (recorded, found)"


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf of nested mappings and lists with its path; an empty one is a leaf too."""
    nested = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    if not nested:
        yield where, value
    for key, child in nested:
        yield from leaves(child, f"{where}/{key}" if where else str(key))


def _equal(one: Any, other: Any, relative: float) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=relative, abs_tol=relative) or (one != one and other != other)
    return type(one) is type(other) and one == other
