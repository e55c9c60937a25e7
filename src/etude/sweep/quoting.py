"""Values as Hydra's override grammar writes them."""

import re
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9_/.+-]([A-Za-z0-9_/.:+-]*[A-Za-z0-9_/.+-])?")  # needs no quotes in Hydra's grammar


def quoted(value: Any) -> str:
    """`value` as Hydra's override grammar writes it, so that it is read back as one value and nothing else.

    Example:
        >>> [quoted(value) for value in ("table3/A1", 1e-9, None, True, "a, b", [1, 2])]
        ['table3/A1', '1e-09', 'null', 'true', "'a, b'", '[1,2]']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(quoted(item) for item in value)}]"
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    # Backslashes are themselves in Hydra's quotes, unless they stand before a quote.
    escaped = re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text)
    return f"'{escaped}'"
