"""Quote values for Hydra's override grammar."""

import re
from collections.abc import Iterable
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9_/.+-]([A-Za-z0-9_/.:+-]*[A-Za-z0-9_/.+-])?")  # needs no quotes in Hydra's grammar
# Values that Hydra reads without quotes, and values that may be a list or already have quotes.
_AS_TYPED = re.compile(r"[A-Za-z0-9_ /:+.$%*@?|-]*|.*[][{}()'\",\\=].*", re.DOTALL)


def make_readable(overrides: Iterable[str]) -> list[str]:
    """Quote values with characters that Hydra's grammar does not have, such as a path with an accent.

    Values with brackets, commas or quotes are left unchanged: they may be lists.

    Example:
        >>> make_readable(["data.root=/home/rené/x", "seed=1,2"])
        ["data.root='/home/rené/x'", 'seed=1,2']
    """
    return [_readable(override) for override in overrides]


def _readable(override: str) -> str:
    key, equals, value = override.partition("=")
    if not equals or key.startswith("-") or _AS_TYPED.fullmatch(value):
        return override
    return f"{key}={quote(value)}"


def quote(value: Any) -> str:
    """Write `value` in Hydra's override grammar, so that it is read back as the same single value.

    Example:
        >>> [quote(value) for value in ("table3/A1", 1e-9, None, True, "a, b", [1, 2])]
        ['table3/A1', '1e-09', 'null', 'true', "'a, b'", '[1,2]']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(quote(item) for item in value)}]"
    text = str(value)
    return text if _PLAIN.fullmatch(text) else quote_text(text)


def quote_text(text: str) -> str:
    """Write a text in quotes, in which Hydra reads even 5 and null as text."""
    # Within quotes, Hydra reads a backslash literally unless it is followed by a quote.
    escaped = re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text)
    return f"'{escaped}'"
