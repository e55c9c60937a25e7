"""Tables of the measured layers as text, for the terminal and for the HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etude.report.statistics.exponents import Exponent, fit_exponents
from etude.report.wording import SUPERSCRIPTS
from etude.runs.measurements import Found
from etude.studies.measured import OUTWEIGHS, SYMBOLS, Exponents, MeasuredStudy, Row


@dataclass(frozen=True)
class Table:
    """Rows of text. Only the first row of a layer names it."""

    title: str
    headers: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Fit:
    """The fitted exponents of one cost of a layer, and the expected ones; None if theory expects nothing."""

    of: str
    where: str
    expected: Exponents | None
    found: dict[str, Exponent]


def fits(row: Row, found: Found) -> Iterator[Fit]:
    """Yield the exponents of every measured cost of a layer."""
    for where, points in found["flops"].items():
        yield Fit("FLOPs", where, row.flops.get(where), _fit(points, "flops"))
    seconds = [one | {"seconds": one["forward"] + one["backward"]} for one in found["costs"]]
    joined = [one for one in found["path"] if one["path"]]
    yield Fit("seconds", "as measured", None, _fit(seconds, "seconds"))
    yield Fit("bytes", "as measured", None, _fit(found["costs"], "bytes"))
    yield Fit("operations", "in a chain", row.operations, _fit(found["operations"], "operations"))
    yield Fit("path", "the longest", row.path, _fit(joined, "path"))


def make_tables(study: MeasuredStudy, kept: Mapping[str, Found]) -> list[Table]:
    """Make three tables: exponents beside the paper's O(.), costs at the largest n and d, chains and paths over n."""
    rows = [row for row in study.rows if row.name in kept]
    n, d = max(study.sizes["n"]), max(study.sizes["d"])
    ns = ", ".join(map(str, study.sizes["n"]))
    return [
        Table(
            "One layer: exponents of n and d, and of k or r, with 95 % intervals",
            ["layer", "paper", "of", "where", "expected", "n", "d", "k or r"],
            [cells for row in rows for cells in _exponents(row, kept[row.name])],
        ),
        Table(
            f"Forward and backward at n = {n}, d = {d}",
            ["layer", "k or r", "FLOPs", "forward, ms", "backward, ms", "kept, MB", "path"],
            [cells for row in rows for cells in _costs(row, kept[row.name], n, d)],
        ),
        Table(
            f"Operations that wait for each other, and the longest path, at n = {ns}",
            ["layer", "operations", "paper", "path", "paper's path"],
            [_structure(row, kept[row.name]) for row in rows],
        ),
    ]


def notes(study: MeasuredStudy, kept: Mapping[str, Found]) -> list[str]:
    """Say where the times were measured, how exponents were fitted, and which layers are missing."""
    machines = {_format_machine(**found["machine"]) for found in kept.values()}
    typed = f" with {' '.join(study.overrides)}" if study.overrides else ""
    missing = [row.name for row in study.rows if row.name not in kept]
    sentences = [
        f"Measured{typed} on {' and '.join(sorted(machines))}; seconds are medians of {study.repeats}.",
        f"Exponents of FLOPs are fitted where one size is {OUTWEIGHS} times the other or more. The first k and r stand "
        "where n and d vary, and the largest n and d where k and r do.",
    ]
    if missing:
        sentences.append(f"Not measured yet: {', '.join(missing)}; the same sweep, typed again, goes on.")
    return sentences


def symbol_of(row: Row) -> str | None:
    """Return the symbol of the size of a layer's window: k, r, or None."""
    return next((symbol for symbol in row.symbols if symbol in ("k", "r")), None)


def format_exponents(expected: Exponents) -> str:
    """Format a product of powers as the paper does: `k n d²`, `n / k`, or `1`."""
    powers = {symbol: expected.get(symbol, 0) for symbol in ("k", "r", "n", "d")}
    above = " ".join(_power(symbol, power) for symbol, power in powers.items() if power > 0)
    below = " ".join(_power(symbol, -power) for symbol, power in powers.items() if power < 0)
    return (above or "1") + (f" / {below}" if below else "")


def _exponents(row: Row, found: Found) -> Iterator[list[str]]:
    for place, fit in enumerate(fits(row, found)):
        yield [
            *([row.name, f"O({row.paper['complexity']})"] if place == 0 else ["", ""]),
            fit.of,
            fit.where,
            "" if fit.expected is None else format_exponents(fit.expected),
            *(_format(fit.found.get(symbol or "")) for symbol in ("n", "d", symbol_of(row))),
        ]


def _costs(row: Row, found: Found, n: int, d: int) -> Iterator[list[str]]:
    symbol = symbol_of(row)
    paths = {one.get(symbol): one["path"] for one in found["path"] if one["n"] == n}
    for place, cost in enumerate(one for one in found["costs"] if (one["n"], one["d"]) == (n, d)):
        size = cost.get(symbol)
        yield [
            row.name if place == 0 else "",
            f"{symbol} = {size}" if size else "",
            f"{cost['flops']:.3g}",
            *(f"{1e3 * cost[key]:.2f}" for key in ("forward", "backward")),
            f"{cost['bytes'] / 1e6:.2f}",
            _path(paths[size]),
        ]


def _structure(row: Row, found: Found) -> list[str]:
    symbol = symbol_of(row)
    first = found["path"][0].get(symbol)
    path = ", ".join(_path(one["path"]) for one in found["path"] if one.get(symbol) == first)
    chain = ", ".join(str(one["operations"]) for one in found["operations"])
    paper_path = f"O({row.paper['path']})" + (f" at {symbol} = {first}" if symbol else "")
    return [row.name, chain, f"O({row.paper['sequential']})", path, paper_path]


def _path(length: int | None) -> str:
    return "∞" if length is None else str(length)


def _format(one: Exponent | None) -> str:
    """Format an exponent, with half its interval if it has one; -0.00 becomes 0.00."""
    if one is None:
        return ""
    return f"{round(one.value, 2) + 0.0:.2f}" + ("" if one.half is None else f" ± {one.half:.2f}")


def _fit(points: Sequence[Mapping[str, Any]], cost: str) -> dict[str, Exponent]:
    sizes = [{symbol: size for symbol, size in point.items() if symbol in SYMBOLS} for point in points]
    return fit_exponents(sizes, [point[cost] for point in points])


def _power(symbol: str, power: int) -> str:
    return symbol if power == 1 else f"{symbol}{power}".translate(SUPERSCRIPTS)


def _format_machine(processor: str, cores: int, threads: int, torch: str) -> str:
    return f"{processor} ({cores} core{'s' * (cores > 1)}, {threads} thread{'s' * (threads > 1)}, torch {torch})"
