"""Quote values for Hydra's override grammar."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import yaml

from etude.paths import folders_of

_PLAIN = re.compile(r"[A-Za-z0-9_/.+-]([A-Za-z0-9_/.:+-]*[A-Za-z0-9_/.+-])?")  # needs no quotes in Hydra's grammar
NOT_TEXT = re.compile(r"[-+]?((\d[\d_.]*|\.\d[\d_]*)(e[-+]?\d+)?|inf|nan)|true|false|null", re.IGNORECASE)  # to Hydra
_SEVERAL = re.compile(r"\[([^][]*)\]")
_QUOTES = " '\""
# Values that Hydra reads without quotes, and values that may be a list or already have quotes.
_AS_TYPED = re.compile(r"[A-Za-z0-9_ /:+.$%*@?|-]*|.*[][{}()'\",\\=].*", re.DOTALL)


def make_readable(overrides: Iterable[str]) -> list[str]:
    """Write overrides that Hydra's grammar does not have in the form that it has.

    Values with characters that it lacks, such as a path with an accent, are quoted. Those with brackets, commas or
    quotes are left unchanged: they may be lists. W&B's agents type the None and the dictionaries of Python.

    Example:
        >>> make_readable(["data.root=/home/rené/x", "seed=1,2", "model.d_k=None", "budget={'steps': 0.5}"])
        ["data.root='/home/rené/x'", 'seed=1,2', 'model.d_k=null', 'budget.steps=0.5']
    """
    return [readable for override in overrides for readable in _readable(override)]


def _readable(override: str) -> Iterator[str]:
    key, equals, value = override.partition("=")
    if not equals or key.startswith("-"):
        yield override
    elif key == "experiment" and "[" in value and "(" not in value:  # one configuration, with what several arms change
        yield f"{key}={_SEVERAL.sub(_join_arms, value)}"
    elif value == "None":
        yield f"{key}={quote_for(key, None)}"
    elif value.startswith("{'") and (nested := _read_dictionary(value)):
        if key.lstrip("+") == "init_from":  # which is null by default, and has no keys then
            read = {name: quote_text(one) if _needs_quotes(one) else quote(one) for name, one in nested.items()}
            yield f"{key}={{{','.join(f'{name}:{one}' for name, one in read.items())}}}"
            return
        for name, one in nested.items():
            yield from _readable(f"{key}.{name}={quote_text(one) if _needs_quotes(one) else one}")
    elif _AS_TYPED.fullmatch(value):
        yield override
    else:
        yield f"{key}={quote(value)}"


def _needs_quotes(value: Any) -> bool:
    """Return whether Hydra would read a text in a dictionary as something else without its quotes; but None is null."""
    return isinstance(value, str) and bool(NOT_TEXT.fullmatch(value) or re.search(r"[][{}()'\",\\=]", value))


def _join_arms(several: re.Match[str]) -> str:
    return "+".join(arm.strip(_QUOTES) for arm in several[1].split(","))


def _read_dictionary(text: str) -> dict[str, Any]:
    """Read what Python prints of a dictionary, which is YAML too; empty if it is none."""
    with suppress(yaml.YAMLError):
        found = yaml.safe_load(text)
        return found if isinstance(found, dict) else {}
    return {}


def quote_for(key: str, value: Any) -> str:
    """Quote the value of a key. For null a config group has a file `none`, or else nothing that could be chosen."""
    group = key.lstrip("+")
    folders = [folder / group for folder in folders_of("conf")]
    if value is not None or not (group == "experiment" or any(folder.is_dir() for folder in folders)):
        return quote(value)
    return "none" if any((folder / "none.yaml").is_file() for folder in folders) else "None"


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
