"""Measure Table 1: what a layer of each kind costs, and how far apart it leaves two positions; see README.md.

Sizes have the paper's symbols: n positions of d numbers, a kernel of k positions, a neighbourhood of r.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from chart import draw_layers
from dependencies import chain_length, max_path_length
from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.stats import t as student
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.tasks import build
from etude.tasks.counted import count_saved_bytes

Sizes = dict[str, list[int]]  # symbol -> sizes
Exponents = dict[str, int]  # symbol -> exponent
Found = dict[str, Any]  # what was measured of one layer

SYMBOLS = ("n", "d", "k", "r")
SCALES: dict[str, Sizes] = {
    "pocket": {"n": [32, 64, 128, 256], "d": [32, 64, 128, 256], "k": [5, 9, 17, 33], "r": [9, 17, 33, 65]},
    "full": {"n": [64, 128, 256, 512, 1024], "d": [64, 128, 256, 512], "k": [5, 9, 17, 33], "r": [9, 17, 33, 65]},
}
OUTWEIGHS = 16
"""Where n ≫ d, n is at least this many times d: the other term changes an exponent by at most 2 / (2 + 16) = 0.11."""


@dataclass(frozen=True)
class Layer:
    """A row: what the paper prints in O(.), how the layer is made of étude's parts, and the exponents of theory.

    Attributes:
        name: of the layer.
        complexity: the paper's complexity; `sequential` and `path` are its two other columns.
        overrides: compose the layer. Attention is computed step by step (`eager`), so that each operation is seen.
        flops: where one size outweighs another, or `anywhere` if there is one term alone -> the exponents of FLOPs.
            Where d outweighs n or r, it is the four projections of attention, which the paper's rows leave out.
        chain: the exponents of the number of operations that wait for each other.
        reach: the exponents of the longest path.
    """

    name: str
    complexity: str
    sequential: str
    path: str
    overrides: list[str]
    flops: dict[str, Exponents]
    chain: Exponents
    reach: Exponents

    @property
    def symbols(self) -> list[str]:
        """The symbols of the sizes that the layer depends on."""
        expected = [*self.flops.values(), self.chain, self.reach]
        return [symbol for symbol in SYMBOLS if any(symbol in exponents for exponents in expected)]

    @property
    def window(self) -> str | None:
        """The symbol of the size of the layer's window: k, r, or None."""
        return next((symbol for symbol in self.symbols if symbol in ("k", "r")), None)

    @cached_property
    def bare(self) -> DictConfig:
        """The config of one layer with its residual connection, without norm, dropout, feed-forward and positions."""
        without = (f"model/{part}=none" for part in ("feedforward", "norm", "position"))
        return compose(["scale=full", "model.n_layers=1", "model.dropout=0", *without, *self.overrides])

    def build(self, sizes: Mapping[str, int], device: str = "cpu", heads: int = 8) -> nn.Module:
        """Build the layer, which maps (B, S, D) and a mask (B, S) to (B, S, D).

        Args:
            sizes: d, and k or r if the layer has one.
            device: "meta" for shapes without values.
            heads: number of attention heads.
        """
        config = self.bare.copy()
        config.model.d_model, config.model.heads = sizes["d"], heads
        if "k" in self.symbols:
            config.model.encoder.kernel = sizes["k"]
        if "r" in self.symbols:
            config.model.attention.window = sizes["r"] // 2  # on one side
        with torch.device(device):
            made: nn.Module = build.model(resolve(config), 8).encoder  # type: ignore[assignment] # 8 words, not used
        return made


CONTIGUOUS = "log_k n; contiguous n / k"
LAYERS = (
    Layer(
        *("self_attention", "n² d", "1", "1"),
        ["model/encoder=transformer", "model/attention=multi_head", "model/backend=eager"],
        {"n ≫ d": {"n": 2, "d": 1}, "d ≫ n": {"n": 1, "d": 2}},
        *({"n": 0}, {"n": 0}),
    ),
    Layer(
        *("recurrent", "n d²", "n", "n"),
        ["model/encoder=recurrent"],
        {"anywhere": {"n": 1, "d": 2}},
        *({"n": 1}, {"n": 1}),
    ),
    Layer(
        *("convolutional", "k n d²", "1", CONTIGUOUS),
        ["model/encoder=convolution"],
        {"anywhere": {"k": 1, "n": 1, "d": 2}},
        *({"n": 0}, {"n": 1, "k": -1}),
    ),
    Layer(
        *("separable", "k n d + n d²", "1", CONTIGUOUS),
        ["model/encoder=convolution", "model.encoder.separable=true"],
        {"k ≫ d": {"k": 1, "n": 1, "d": 1}, "d ≫ k": {"k": 0, "n": 1, "d": 2}},
        *({"n": 0}, {"n": 1, "k": -1}),
    ),
    Layer(
        *("restricted", "r n d", "1", "n / r"),
        [
            *("model/encoder=transformer", "model/attention=local", "model/backend=eager"),
            "model.attention._target_=banded.BandedAttention",
        ],
        {"r ≫ d": {"r": 1, "n": 1, "d": 1}, "d ≫ r": {"r": 0, "n": 1, "d": 2}},
        *({"n": 0}, {"n": 1, "r": -1}),
    ),
)


def measure(sizes: Sizes, repeats: int) -> Found:
    """Measure every layer, and say which is done."""
    layers = {}
    for layer in LAYERS:
        started = time.monotonic()
        layers[layer.name] = measure_layer(layer, sizes, repeats)
        print(f"{layer.name} measured in {time.monotonic() - started:.0f} s", flush=True)
    machine = (
        f"{platform.machine()} ({os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__})"
    )
    return {"sizes": sizes, "repeats": repeats, "machine": machine, "layers": layers}


def measure_layer(layer: Layer, sizes: Sizes, repeats: int) -> Found:
    """Measure everything about a layer, each number with its sizes.

    Returns:
        `costs` from `measure_costs`; sequential `operations` and maximum `path` length (None if some positions are not
        connected), both at the smallest width and with one head, which do not change the dependencies; and `flops`, by
        the condition on the sizes under which they were counted.
    """
    d = min(sizes["d"])
    along = cells(sizes, [symbol for symbol in layer.symbols if symbol != "d"])
    narrow = [layer.build(cell | {"d": d}, heads=1).double() for cell in along]
    both = [*zip(narrow, along, strict=True)]
    return {
        "costs": measure_costs(layer, cells(sizes, layer.symbols), repeats),
        "operations": [cell | {"operations": chain_length(one, cell["n"], d)} for one, cell in both[: len(sizes["n"])]],
        "path": [cell | {"path": max_path_length(one, cell["n"], d)} for one, cell in both],
        "flops": {where: count_where(layer, where, sizes) for where in layer.flops},
    }


def cells(sizes: Sizes, symbols: Sequence[str]) -> list[dict[str, int]]:
    """List the sizes at which to measure: every n with every d at the first k or r, then each other k or r at the last.

    The last n and d are the largest.
    """
    grid = [symbol for symbol in symbols if symbol in ("n", "d")]
    others = [symbol for symbol in symbols if symbol not in grid]
    first = {symbol: sizes[symbol][0] for symbol in others}
    found = [dict(zip(grid, cell, strict=True)) | first for cell in product(*(sizes[symbol] for symbol in grid))]
    return found + [found[-1] | {symbol: size} for symbol in others for size in sizes[symbol][1:]]


def measure_costs(layer: Layer, at: Sequence[dict[str, int]], repeats: int) -> list[Found]:
    """Measure the cost of a layer for one sentence at each of several sizes.

    Every cell is timed once before any is timed again, so that a slow minute of the machine affects all of them. The
    first round is a warm-up and does not count.

    Returns:
        For each cell its sizes; `flops` of a forward pass; `forward` and `backward`, median seconds; `bytes` saved for
        the backward pass, without parameters.
    """
    built = [(layer.build(sizes), sizes["n"], sizes["d"]) for sizes in at]
    rounds = [[time_passes(*one) for one in built] for _ in range(repeats + 1)][1:]
    found = []
    for (one, n, d), sizes, seconds in zip(built, at, zip(*rounds, strict=True), strict=True):
        forward, backward = (statistics.median(times) for times in zip(*seconds, strict=True))
        x, mask = sentence(n, d)
        _, kept = count_saved_bytes(one, (x, mask), x)
        flops = count_flops(layer.build(sizes, "meta"), n, d)
        found.append({**sizes, "flops": flops, "forward": forward, "backward": backward, "bytes": kept})
    return found


def time_passes(layer: nn.Module, n: int, d: int) -> tuple[float, float]:
    """Time a forward and a backward pass, in seconds."""
    x, mask = sentence(n, d)
    started = time.perf_counter()
    y = layer(x, mask)
    between = time.perf_counter()
    y.sum().backward()
    return between - started, time.perf_counter() - between


def sentence(n: int, d: int) -> tuple[Tensor, Tensor]:
    """Return an input (1, n, d) and its mask (1, n)."""
    return torch.randn(1, n, d, requires_grad=True), torch.ones(1, n, dtype=torch.bool)


def count_where(layer: Layer, where: str, sizes: Sizes) -> list[dict[str, int]]:
    """Count, without computing, the FLOPs of a layer at all sizes that satisfy the condition `where`."""
    stretched, others = stretch(where, sizes), [symbol for symbol in layer.symbols if symbol != "n"]
    found = []
    for values in product(*(stretched[symbol] for symbol in others)):
        cell = dict(zip(others, values, strict=True))
        built = layer.build(cell, "meta")
        found += [{"n": n, **cell, "flops": count_flops(built, n, cell["d"])} for n in stretched["n"]]
    return found


def count_flops(layer: nn.Module, length: int, width: int) -> int:
    """Count the FLOPs of the matrix products in a forward pass on the meta device, two for each multiplication."""
    with torch.no_grad(), torch.device("meta"), FlopCounterMode(display=False) as counter:
        layer(torch.empty(1, length, width), torch.ones(1, length, dtype=torch.bool))
    flops: int = counter.get_total_flops()
    return flops


def stretch(where: str, sizes: Sizes) -> Sizes:
    """Multiply the sizes of one symbol until the smallest of them outweighs the largest of another symbol.

    A kernel or a window is never longer than the sentence, so n grows with them.
    """
    if where == "anywhere":
        return sizes
    large, small = where.split(" ≫ ")
    found = sizes | {large: scale_up(sizes[large], OUTWEIGHS * max(sizes[small]))}
    return found | {"n": scale_up(sizes["n"], max(found[large]))} if large in ("k", "r") else found


def scale_up(values: Sequence[int], least: int) -> list[int]:
    """Multiply the values by an odd factor that brings all of them to `least` or more; odd values stay odd."""
    factor = -(-least // min(values))
    return [(factor | 1) * value for value in values] if factor > 1 else [*values]


def fit(points: Sequence[Mapping[str, Any]], cost: str) -> dict[str, tuple[float, float]]:
    """Fit the exponents a, b in `cost` = c n^a d^b by least squares of logarithms; a size that does not vary has none.

    Returns:
        For each size its exponent and half its 95 % interval.
    """
    varied = [size for size in SYMBOLS if len({point.get(size) for point in points}) > 1]
    logs = np.log(np.array([[point[size] for size in varied] for point in points], dtype=float))
    design, costs = np.column_stack([np.ones(len(logs)), logs]), np.log([point[cost] for point in points])
    found, *_ = np.linalg.lstsq(design, costs, rcond=None)
    free = len(logs) - design.shape[1]
    variance = ((costs - design @ found) ** 2).sum() / free
    half = student.ppf(0.975, free) * np.sqrt(variance * np.diag(np.linalg.pinv(design.T @ design)))
    return dict(zip(varied, zip(found[1:], half[1:], strict=True), strict=True))


def fits(layer: Layer, found: Found) -> Iterator[tuple[str, str, Exponents | None, dict[str, tuple[float, float]]]]:
    """Yield every cost of a layer, where it was measured, the expected exponents if any, and the fitted ones."""
    for where, points in found["flops"].items():
        yield "FLOPs", where, layer.flops[where], fit(points, "flops")
    seconds = [one | {"seconds": one["forward"] + one["backward"]} for one in found["costs"]]
    yield "seconds", "as measured", None, fit(seconds, "seconds")
    yield "bytes", "as measured", None, fit(found["costs"], "bytes")
    yield "operations", "in a chain", layer.chain, fit(found["operations"], "operations")
    yield "path", "the longest", layer.reach, fit([one for one in found["path"] if one["path"]], "path")


def tables(record: Found) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield title, headers and rows: exponents beside the paper's, costs at the largest n and d, chains and paths."""
    sizes, layers = record["sizes"], [(layer, record["layers"][layer.name]) for layer in LAYERS]
    n, d = max(sizes["n"]), max(sizes["d"])
    yield (
        "One layer: exponents of n and d, and of k or r, with 95 % intervals",
        ["layer", "paper", "of", "where", "expected", "n", "d", "k or r"],
        [row for layer, found in layers for row in exponent_rows(layer, found)],
    )
    yield (
        f"Forward and backward at n = {n}, d = {d}",
        ["layer", "k or r", "FLOPs", "forward, ms", "backward, ms", "kept, MB", "path"],
        [row for layer, found in layers for row in cost_rows(layer, found, n, d)],
    )
    yield (
        f"Operations that wait for each other, and the longest path, at n = {', '.join(map(str, sizes['n']))}",
        ["layer", "operations", "paper", "path", "paper's path"],
        [structure_row(*one) for one in layers],
    )


def exponent_rows(layer: Layer, found: Found) -> Iterator[list[str]]:
    """Yield a row for each cost; only the first names the layer."""
    head = [layer.name, f"O({layer.complexity})"]
    for of, where, expected, fitted in fits(layer, found):
        shown = ["" if expected is None else format_exponents(expected)]
        for symbol in ("n", "d", layer.window or ""):
            value, half = fitted.get(symbol, (None, None))
            shown.append("" if value is None else f"{round(value, 2) + 0.0:.2f} ± {half:.2f}")  # -0.00 becomes 0.00
        yield [*head, of, where, *shown]
        head = ["", ""]


def cost_rows(layer: Layer, found: Found, n: int, d: int) -> Iterator[list[str]]:
    """Yield a row for each k or r; only the first names the layer."""
    name, symbol = layer.name, layer.window
    paths = {one.get(symbol): one["path"] for one in found["path"] if one["n"] == n}
    for cost in (one for one in found["costs"] if (one["n"], one["d"]) == (n, d)):
        times = [f"{1e3 * cost[key]:.2f}" for key in ("forward", "backward")]
        window = f"{symbol} = {cost[symbol]}" if symbol else ""
        yield [
            name,
            window,
            f"{cost['flops']:.3g}",
            *times,
            f"{cost['bytes'] / 1e6:.2f}",
            path(paths[cost.get(symbol)]),
        ]
        name = ""


def structure_row(layer: Layer, found: Found) -> list[str]:
    """Return the chains and the paths of a layer for every n, at the first k or r."""
    first = found["path"][0].get(layer.window)
    paths = ", ".join(path(one["path"]) for one in found["path"] if one.get(layer.window) == first)
    chain = ", ".join(str(one["operations"]) for one in found["operations"])
    printed = f"O({layer.path})" + (f" at {layer.window} = {first}" if layer.window else "")
    return [layer.name, chain, f"O({layer.sequential})", paths, printed]


def path(length: int | None) -> str:
    """Format the length of a path; None if some positions are not connected."""
    return "∞" if length is None else str(length)


def format_exponents(expected: Exponents) -> str:
    """Format a product of powers as the paper does: `k n d²`, `n / k`, or `1`."""
    words = {symbol: symbol + "²" * (abs(power) == 2) for symbol, power in expected.items()}
    above = " ".join(words[symbol] for symbol in ("k", "r", "n", "d") if expected.get(symbol, 0) > 0)
    below = " ".join(words[symbol] for symbol in ("k", "r", "n", "d") if expected.get(symbol, 0) < 0)
    return (above or "1") + (f" / {below}" if below else "")


def show(record: Found) -> None:
    """Print the tables."""
    out = Console(width=130)
    for title, headers, rows in tables(record):
        table = Table(*headers, box=box.HORIZONTALS, show_edge=False, padding=(0, 1, 0, 0))
        several = any(not row[0] for row in rows)  # rows of one layer
        for row, after in zip(rows, [*rows[1:], [""]], strict=True):
            table.add_row(*row, end_section=several and bool(after[0]))
        out.print(title, style="bold")
        out.print(table, "")
    out.print(
        f"Measured on {record['machine']}; seconds are medians of {record['repeats']}. Exponents of FLOPs are "
        f"fitted where one size is {OUTWEIGHS} times the other or more. The first k and r stand where n and d vary, "
        "and the largest n and d where k and r do."
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure, or read what was measured; print the tables; write what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="pocket", help="the sizes of each symbol")
    for symbol in SYMBOLS:
        parser.add_argument(f"--{symbol}", type=int, nargs="+", metavar="SIZE", help=f"other sizes {symbol}")
    parser.add_argument("--repeats", type=int, default=5, help="how often each cell is timed")
    parser.add_argument("--read", type=Path, metavar="FILE", help="measure nothing, but show what FILE holds")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write what was measured, as JSON")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write log-log plots")
    args = parser.parse_args(words)
    given = {symbol: sorted(getattr(args, symbol)) for symbol in SYMBOLS if getattr(args, symbol)}
    sizes = SCALES[args.scale] | given
    if even := [size for symbol in "kr" for size in sizes[symbol] if size % 2 == 0]:
        parser.error(f"{even[0]} of k or r is even: there must be as many neighbours on either side")
    record = json.loads(args.read.read_text()) if args.read else measure(sizes, args.repeats)
    if args.save:
        args.save.write_text(json.dumps(record, ensure_ascii=False) + "\n")
    show(record)
    if args.svg:
        args.svg.write_text(draw_layers(record))


if __name__ == "__main__":
    main()
