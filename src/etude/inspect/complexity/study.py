"""Measure the layers of a study one after another, and write the result of each as soon as it is known."""

import os
import platform
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch

from etude.config.resolve import resolve
from etude.files import read_json, write_json
from etude.inspect.complexity.costs import count_flops, measure_costs
from etude.inspect.complexity.dependencies import chain_length, max_path_length
from etude.inspect.complexity.layers import Layer, compose_layers
from etude.runs.measurements import Found, hold_measurements, place
from etude.studies.measured import OUTWEIGHS, MeasuredStudy, Sizes, outweighs


def measure_study(study: MeasuredStudy, runs_dir: Path) -> Iterator[tuple[str, float | None]]:
    """Measure the layers that have not been measured yet, and write each result under `runs_dir`.

    Yields:
        The name of each layer, and the seconds that it took; None if it has been measured before.

    Raises:
        UserError: a layer cannot be built at some size, or another process measures this study. Then no layer has been
            measured.
    """
    layers = compose_layers(study)
    for layer in layers:
        for cell in cells(study.sizes, layer.row.symbols):
            layer.build(cell, "meta")
    with hold_measurements(study, runs_dir):
        for layer in layers:
            started, file = time.monotonic(), place(study, layer.row, runs_dir)
            model = resolve(layer.config)["model"]
            if (read_json(file) or {}).get("model") == model:
                yield layer.row.name, None
                continue
            found = measure_layer(layer, study.sizes, study.repeats)
            write_json(file, study.setting(layer.row) | {"model": model, "machine": _machine()} | found)
            yield layer.row.name, time.monotonic() - started


def measure_layer(layer: Layer, sizes: Sizes, repeats: int) -> Found:
    """Measure everything about a layer, each number with its sizes.

    Returns:
        `costs` from `measure_costs`; sequential `operations` and maximum `path` length (None if some positions are not
        connected), both at the smallest width and with one head, which do not change the dependencies; and `flops`, by
        the condition on the sizes under which they were counted.
    """
    d = min(sizes["d"])
    along = cells(sizes, [symbol for symbol in layer.row.symbols if symbol != "d"])
    narrow = [layer.build(cell | {"d": d}, heads=1).double() for cell in along]
    both = [*zip(narrow, along, strict=True)]
    return {
        "costs": measure_costs(layer, cells(sizes, layer.row.symbols), repeats),
        "operations": [cell | {"operations": chain_length(one, cell["n"], d)} for one, cell in both[: len(sizes["n"])]],
        "path": [cell | {"path": max_path_length(one, cell["n"], d)} for one, cell in both],
        "flops": {where: count_where(layer, where, sizes) for where in layer.row.flops},
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


def count_where(layer: Layer, where: str, sizes: Sizes) -> list[dict[str, int]]:
    """Count, without computing, the FLOPs of a layer at all sizes that satisfy the condition `where`."""
    lengths, others = stretch(where, sizes)["n"], [symbol for symbol in layer.row.symbols if symbol != "n"]
    found = []
    for values in product(*(stretch(where, sizes)[symbol] for symbol in others)):
        cell = dict(zip(others, values, strict=True))
        built = layer.build(cell, "meta")
        found += [{"n": n, **cell, "flops": count_flops(built, n, cell["d"])} for n in lengths]
    return found


def stretch(where: str, sizes: Sizes) -> Sizes:
    """Multiply the sizes of one symbol until the smallest of them outweighs the largest of another symbol.

    A kernel or a window is never longer than the sentence, so n grows with them.
    """
    pair = outweighs(where)
    if pair is None:
        return sizes
    large, small = pair
    found = sizes | {large: _scale_up(sizes[large], OUTWEIGHS * max(sizes[small]))}
    return found | {"n": _scale_up(sizes["n"], max(found[large]))} if large in ("k", "r") else found


def _scale_up(values: Sequence[int], least: int) -> list[int]:
    """Multiply the values by an odd factor that brings all of them to `least` or more; odd values stay odd."""
    factor = -(-least // min(values))
    return [(factor | 1) * value for value in values] if factor > 1 else [*values]


def _machine() -> dict[str, Any]:
    """Describe the machine that the times were measured on."""
    threads = torch.get_num_threads()
    return {"processor": platform.machine(), "cores": os.cpu_count(), "threads": threads, "torch": torch.__version__}
