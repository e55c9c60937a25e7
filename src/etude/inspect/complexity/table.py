"""The measured Table 1, for a person at a terminal."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Found = dict[str, Any]


def render_layers(found: Sequence[Found]) -> RenderableType:
    """The exponents of each layer beside the paper's O(.), then its chains and paths."""
    ns = ", ".join(str(one["n"]) for one in found[0]["chain"])
    return Group(
        Text("One layer: exponents of n and d, with 95 % intervals", style="bold"),
        _exponents(found),
        Text("\nForward and backward at the largest n and d measured", style="bold"),
        _costs(found),
        Text(
            f"\nOperations that wait for each other, and the longest path, at n = {ns}",
            style="bold",
        ),
        _structure(found),
        Text("Exponents of FLOPs are fitted where one size is 16 times the other or more (r: the neighbourhood)."),
    )


def _exponents(found: Sequence[Found]) -> Table:
    table = _table("layer", "paper", "of", "where", "expected", "n", "d")
    for row in found:
        for place, fit in enumerate(row["fits"]):
            first = place == 0
            expected = fit.get("expected")
            table.add_row(
                row["layer"] if first else "",
                f"O({row['paper']['complexity']})" if first else "",
                fit["of"],
                fit["where"],
                "n^{n} d^{d}".format(**expected) if expected else "",
                *(_exponent(fit.get(size)) for size in ("n", "d")),
                end_section=place == len(row["fits"]) - 1,
            )
    return table


def _costs(found: Sequence[Found]) -> Table:
    table = _table("layer", "FLOPs", "forward, ms", "backward, ms", "kept, MB")
    for row in found:
        cost = row["costs"][-1]
        seconds = (f"{1e3 * cost[key]:.2f}" for key in ("forward", "backward"))
        table.add_row(row["layer"], f"{cost['flops']:.3g}", *seconds, f"{cost['bytes'] / 1e6:.2f}")
    return table


def _structure(found: Sequence[Found]) -> Table:
    table = _table("layer", "operations", "paper", "path", "paper's path")
    for row in found:
        chain = ", ".join(str(one["operations"]) for one in row["chain"])
        path = ", ".join("∞" if one["length"] is None else str(one["length"]) for one in row["path"])
        table.add_row(row["layer"], chain, f"O({row['paper']['sequential']})", path, f"O({row['paper']['path']})")
    return table


def _exponent(one: dict[str, float | None] | None) -> str:
    """With its interval, where it has one."""
    if one is None:
        return "-"
    value, *bounds = ("?" if number is None else f"{round(number, 2) + 0.0:.2f}" for number in one.values())  # no -0.00
    return value if "?" in bounds else f"{value} [{', '.join(bounds)}]"


def _table(*headers: str) -> Table:
    table = Table(box=box.HORIZONTALS, show_edge=False, padding=(0, 1, 0, 0))
    for header in headers:
        table.add_column(header, no_wrap=header != "paper's path")
    return table
