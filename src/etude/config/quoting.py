"""Values as Hydra's override grammar writes them."""

import re
from collections.abc import Iterable
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9_/.+-]([A-Za-z0-9_/.:+-]*[A-Za-z0-9_/.+-])?")  # needs no quotes in Hydra's grammar
# What Hydra reads without quotes, and what may be more than one value.
_AS_TYPED = re.compile(r"[A-Za-z0-9_ /:+.$%*@?|-]*|.*[][{}()'\",\\=].*", re.DOTALL)


def make_readable(overrides: Iterable[str]) -> list[str]:
    """The overrides with quotes around values that Hydra's grammar has no letters for, such as a path with an accent.

    What has brackets, commas or quotes is left as it is: it may be a list.

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
    """`value` as Hydra's override grammar writes it, so that it is read back as one value and nothing else.

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
    if _PLAIN.fullmatch(text):
        return text
    # Backslashes are themselves in Hydra's quotes, unless they stand before a quote.
    escaped = re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text)
    return f"'{escaped}'"
