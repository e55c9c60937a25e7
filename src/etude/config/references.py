"""Which keys the interpolations of a config read: what else changes, changes nothing but itself."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

READS: dict[str, tuple[str, ...]] = {
    "width": ("scale.width",),
    "depth": ("scale.depth",),
    "heads": ("scale.head_count",),
    "head_dim": ("scale.width", "scale.head_count"),
    "steps": ("budget.steps",),
    "head_size": ("model.d_model", "model.heads"),
    "oc.env": (),
}
"""What a resolver reads beside its arguments. One that does not stand here may read anything."""

_INTERPOLATION = re.compile(r"\$\{\s*([A-Za-z_][\w.]*)\s*([:}])")


def references(*nodes: Any) -> set[str] | None:
    """The keys that the interpolations in these values read, or None where that cannot be told."""
    found: set[str] = set()
    for text in _texts(nodes):
        matches = _INTERPOLATION.findall(text)
        if len(matches) != text.count("${"):
            return None  # relative, computed, or not as expected
        for name, mark in matches:
            if name.partition(".")[0] == "hydra" or (mark == ":" and name not in READS):
                return None
            found.update(READS[name] if mark == ":" else [name])
    return found


def is_read(key: str, read: Iterable[str]) -> bool:
    """Whether one of the keys `read` is the dotted key, lies in it, or holds it."""
    return any(f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.") for other in read)


def _texts(node: Any) -> Iterator[str]:
    """Every string with an interpolation in a plain value."""
    if isinstance(node, str):
        if "${" in node:
            yield node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _texts(value)
