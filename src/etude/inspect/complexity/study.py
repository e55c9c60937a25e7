"""Everything that Table 1 says of each layer, as one dictionary."""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch

from etude.inspect.complexity.costs import Cost, count_flops, measure
from etude.inspect.complexity.dependencies import chain_length, max_path_length
from etude.inspect.complexity.fits import fit_exponents
from etude.inspect.complexity.layers import Layer

OUTWEIGHS = 16
"""How many times as large as the other the smallest of what outweighs is: the other term then bends an exponent by
2 / (2 + 16) = 0.11 at most."""

Grid = tuple[list[int], list[int], dict[str, int]]  # lengths, widths, changes of the layer
Found = dict[str, Any]


def study_layers(layers: Sequence[Layer], lengths: Sequence[int], widths: Sequence[int], repeats: int) -> list[Found]:
    """For each layer: the paper's row, its costs, chains and paths, and the exponents fitted to them.

    Paths and chains are found with the smallest width and one head: neither changes who depends on whom.

    Args:
        layers: any.
        lengths: n, of the grid that is measured.
        widths: D, of the same.
        repeats: how often each cell is timed.

    Raises:
        UserError: a layer cannot be built at a width.
    """
    for layer in layers:
        for width in widths:
            layer.build(width, "meta")  # refused, if so, before anything is measured
    costs = measure(layers, lengths, widths, repeats)
    return [_study(layer, own, lengths, widths) for layer, own in zip(layers, costs, strict=True)]


def machine() -> dict[str, Any]:
    """Where the times were measured."""
    threads = torch.get_num_threads()
    return {"processor": platform.machine(), "cores": os.cpu_count(), "threads": threads, "torch": torch.__version__}


def fit_flops(layer: Layer, where: str, lengths: Sequence[int], widths: Sequence[int]) -> Found:
    """Exponents of the FLOPs where one term outweighs the others, beside those that are expected there.

    The grid is stretched until one size outweighs the other: FLOPs are counted without computing, however large it is.
    """
    ns, ds, changes = _STRETCHED[where](lengths, widths)
    built = {d: layer.build(d, "meta", **changes) for d in ds}
    points = [(n, d, count_flops(built[d], n, d)) for n in ns for d in ds]
    return _fit("FLOPs", where, points) | {"expected": layer.flops[where], "lengths": ns, "widths": ds} | changes


def _study(layer: Layer, costs: list[Cost], lengths: Sequence[int], widths: Sequence[int]) -> Found:
    width = min(widths)
    built = layer.build(width, heads=1).double()
    chain = {n: chain_length(built, n, width) for n in lengths}
    path = {n: max_path_length(built, n, width) for n in lengths}
    return {
        "layer": layer.name,
        "paper": layer.paper,
        "costs": [asdict(cost) for cost in costs],
        "chain": [{"n": n, "operations": operations} for n, operations in chain.items()],
        "path": [{"n": n, "length": longest} for n, longest in path.items()],
        "fits": [
            *(fit_flops(layer, where, lengths, widths) for where in layer.flops),
            _fit("seconds", "as measured", [(cost.n, cost.d, cost.forward + cost.backward) for cost in costs]),
            _fit("bytes", "as measured", [(cost.n, cost.d, cost.bytes) for cost in costs]),
            _fit("operations", "in a chain", [(n, width, operations) for n, operations in chain.items()]),
            _fit("path", "the longest", [(n, width, longest) for n, longest in path.items() if longest]),
        ],
    }


def _fit(of: str, where: str, points: Sequence[tuple[int, int, float]]) -> Found:
    return {"of": of, "where": where} | {size: asdict(one) for size, one in fit_exponents(points).items()}


def _asked(lengths: Sequence[int], widths: Sequence[int]) -> Grid:
    return list(lengths), list(widths), {}


def _long(lengths: Sequence[int], widths: Sequence[int]) -> Grid:
    return _stretch(lengths, widths), list(widths), {}


def _wide(lengths: Sequence[int], widths: Sequence[int]) -> Grid:
    return list(lengths), _stretch(widths, lengths), {}


def _far(lengths: Sequence[int], widths: Sequence[int]) -> Grid:
    """A neighbourhood of the shortest length, which outweighs the widths."""
    ns = _stretch(lengths, widths)
    return ns, list(widths), {"window": min(ns) // 2}


def _stretch(sizes: Sequence[int], others: Sequence[int]) -> list[int]:
    """The sizes times the least factor with which the smallest outweighs the largest of the others."""
    factor = -(-OUTWEIGHS * max(others) // min(sizes))
    return [factor * size for size in sizes]


# A neighbourhood is at most as large as n: where d outweighs n it outweighs r.
_STRETCHED: dict[str, Callable[[Sequence[int], Sequence[int]], Grid]] = {
    "anywhere": _asked,
    "n ≫ d": _long,
    "d ≫ n": _wide,
    "r ≫ d": _far,
    "d ≫ r": _wide,
}
