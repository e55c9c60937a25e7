"""Render the results of an analysis for the terminal."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Row = dict[str, Any]

_LABELS = {"bleu": "BLEU", "bracket_f1": "bracket F1"}


def render_summary(found: dict[str, Any]) -> RenderableType:
    """Render an analysis as tables, without the attention maps, which the HTML page shows."""
    intact, settings, order = found["intact"], found["settings"], found["order"]
    metric, label = settings["metric"], _LABELS.get(settings["metric"], "")
    decoding = ", ".join(f"{key} {value}" for key, value in settings["decoding"].items())
    scored = f", {label} {_number(intact[metric], 1)} ({decoding})" if metric else ""
    longest = found["trained"]["longest"]
    known = "" if longest is None else f"; the longest line trained on has {longest} tokens"
    parts: list[RenderableType] = [
        f"{settings['sentences']:,} sentences of the {settings['split']} set (seed {settings['seed']}): perplexity "
        f"{_number(intact['perplexity'])}{scored}\n",
        *(_heads(found["heads"], intact["perplexity"]) if found["heads"] else ["It has no attention heads.\n"]),
    ]
    if metric:
        parts += [
            f"Source words in random order: perplexity {_number(order['perplexity'])}, "
            f"{_format_signed(order['change'])} {_interval(order['interval'])}\n",
            _title(f"By source length{known}"),
            _lengths(found["lengths"], metric, label),
        ]
    if found["decoding"]:  # empty if beams=[] or alphas=[]
        parts += [
            _title(f"\n{label} and length ratio"),
            _decoding_table(found["decoding"], metric),
            "* the 95 % interval of the change from the run's own search leaves out 0.",
        ]
    if found["averaging"]:
        parts += [_title("\nMean of the last checkpoints"), _averaging_table(found["averaging"], metric, label)]
    return Group(*parts)


def _heads(heads: Sequence[Row], intact: float | None) -> list[RenderableType]:
    """Render a table with a row for each layer; with many heads a row takes several lines."""
    most = max(head["head"] for head in heads)
    table = _table("attention", "layer", "entropy", "distance")
    table.add_column(f"1 to {most}")
    rows = [list(layer) for _, layer in groupby(heads, key=lambda head: (head["attention"], head["layer"]))]
    for layer, following in zip(rows, [*rows[1:], None], strict=True):
        kind = layer[0]["attention"]
        table.add_row(
            kind,
            str(layer[0]["layer"]),
            *(_range([head[key] for head in layer]) for key in ("entropy", "distance")),
            " ".join(_format_rise(head, intact) for head in layer),
            end_section=following is None or following[0]["attention"] != kind,
        )
    return [
        _title("Perplexity rises by so many %, without head"),
        table,
        "Entropy in nats, distance in tokens: the least and the most of the layer's heads.\n"
        f"* the 95 % interval over sentences leaves out 0; of {len(heads)} heads a few would by chance.\n",
    ]


def _format_rise(head: Row, intact: float | None) -> str:
    """Format the rise of perplexity without a head, in per cent, seven characters wide."""
    share = 100 * head["change"] / intact if intact and head["change"] is not None else None
    return f"{_format_signed(share, 1):>6}{_star(head)}"


def _lengths(lengths: Iterable[Row], metric: str, label: str) -> RenderableType:
    table = _table("pairs joined", "tokens", "lines", "longer", "perplexity", label)
    for row in lengths:
        table.add_row(
            str(row["joined"]),
            "-".join(map(str, row["pieces"])),
            str(row["sentences"]),
            "?" if row["longer_than_trained"] is None else str(row["longer_than_trained"]),
            _number(row["perplexity"]),
            _number(row[metric], 1),
        )
    return table


def _decoding_table(searches: Sequence[Row], metric: str) -> RenderableType:
    """Render a table with a row for each beam and a column for each alpha."""
    alphas = list(dict.fromkeys(row["alpha"] for row in searches))
    table = _table("beam", *(f"alpha {alpha}" for alpha in alphas))
    for beam, rows in groupby(searches, key=lambda row: row["beam"]):
        cells = [f"{_number(row[metric], 1)}{_star(row)} {_number(row['length_ratio'])}" for row in rows]
        table.add_row(str(beam), *cells)
    return table


def _averaging_table(averages: Iterable[Row], metric: str, label: str) -> RenderableType:
    table = _table("checkpoints", "perplexity", *([label] if metric else []))
    for row in averages:
        perplexity = f"{_number(row['perplexity'])}{_star(row)}"
        table.add_row(str(row["checkpoints"]), perplexity, *([_number(row[metric], 1)] if metric else []))
    return table


def _title(words: str) -> Text:
    return Text(words, style="bold")


def _table(*headers: str) -> Table:
    table = Table(box=box.HORIZONTALS, show_edge=False, padding=(0, 1, 0, 0))
    for header in headers:
        table.add_column(header, justify="left" if header == "attention" else "right", no_wrap=True)
    return table


def _range(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):.2f}-{max(known):.2f}" if known else "-"


def _star(row: Row) -> str:
    """Return a star if the interval of the change does not contain zero; else a space, to keep numbers aligned."""
    low, high = row["interval"]
    return "*" if low is not None and high is not None and (low > 0 or high < 0) else " "


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _format_signed(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:+,.{digits}f}"


def _interval(bounds: Sequence[float | None]) -> str:
    return f"[{', '.join(map(_format_signed, bounds))}]"
