"""Format numbers, values and lists of names for a report."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from etude.report.statistics import Interval

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_fixed(value: float, digits: int, sign: bool = False) -> str:
    """Format a number with fixed digits: 1,234.50 or, with `sign`, +0.50; a minus sign instead of a hyphen.

    A fraction has no meaning beside a billion: from there on the digits are those of 2.48e+30.
    """
    form = f".{digits}e" if digits and 1e9 <= abs(value) < math.inf else f",.{digits}f"
    return f"{value:{'+' if sign else ''}{form}}".replace("-", "−")


def format_interval(interval: Interval, digits: int) -> str:
    """Format an interval: [0.41, 0.93]."""
    return f"[{format_fixed(interval.low, digits)}, {format_fixed(interval.high, digits)}]"


def join_words(words: Iterable[str]) -> str:
    """Join words as "A", "A and B" or "A, B and C"."""
    *rest, last = words
    return f"{', '.join(rest)} and {last}" if rest else last


def name_arms(arms: Sequence[str], of: int, all_of_them: str) -> str:
    """Join the names of arms, or return `all_of_them` if they are all of several; `of` is the number of arms."""
    return all_of_them if len(arms) == of > 1 else ", ".join(arms)


def format_count(runs: int) -> str:
    """Format a number of runs: "1 run", "3 runs"."""
    return "1 run" if runs == 1 else f"{runs} runs"


def format_range(values: Iterable[int]) -> str:
    """Format the range of some numbers: "3 to 5", or "3" if they are all equal."""
    low, *_, high = sorted([*values] * 2)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def format_value(value: Any) -> str:
    """Format a config value as the paper writes it: 0.1, 100K, sinusoidal."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000 and value % 1000 == 0:
        return f"{value // 1000}K"
    return "–" if value is None else str(value)
