"""Read a study that measures layers instead of training models: its `study.yaml` has `layers` in place of `arms`.

Sizes have the paper's symbols: n positions of d numbers, a kernel of k positions, a neighbourhood of r.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.studies.arms import override_key, split_override
from etude.studies.study import check_keys, find_study, need, study_names
from etude.yaml_file import read_yaml

SYMBOLS = ("n", "d", "k", "r")
ANYWHERE = "anywhere"
"""The regime for costs with a single term: exponents of FLOPs are fitted at all sizes. Other regimes are `n ≫ d`."""
OUTWEIGHS = 16
"""In the regime `n ≫ d`, n is at least this many times d: the other term then changes an exponent by at most
2 / (2 + 16) = 0.11."""

_PAPER = {"complexity", "sequential", "path"}
_ROW = {"paper", "overrides", "flops", "operations", "path"}

Sizes = dict[str, list[int]]  # symbol -> sizes
Exponents = dict[str, int]  # symbol -> exponent


@dataclass(frozen=True)
class Row:
    """A layer, and the exponents that theory expects.

    Attributes:
        name: of the layer.
        paper: the paper's `complexity`, `sequential` and `path`, each the expression in O(.).
        overrides: the overrides that compose the layer.
        flops: regime (such as `n ≫ d`) -> the expected exponents of FLOPs.
        operations: the expected exponents of the number of sequential operations.
        path: the expected exponents of the longest path.
    """

    name: str
    paper: dict[str, str]
    overrides: list[str]
    flops: dict[str, Exponents]
    operations: Exponents
    path: Exponents

    @property
    def symbols(self) -> list[str]:
        """The symbols of the sizes that the layer depends on."""
        expected = [*self.flops.values(), self.operations, self.path]
        return [symbol for symbol in SYMBOLS if any(symbol in exponents for exponents in expected)]


@dataclass(frozen=True)
class MeasuredStudy:
    """The layers to measure, and the sizes to measure them at.

    Attributes:
        name: of the study's folder.
        title: above its tables.
        rows: its layers.
        sizes: a grid of n x d with the first k and r; the other k and r are measured at the largest n and d.
        repeats: how often each cell is timed.
        overrides: the user's overrides of the model; each applies to the layers that have its key.
    """

    name: str
    title: str
    rows: list[Row]
    sizes: Sizes
    repeats: int
    overrides: list[str]

    def setting(self, row: Row) -> dict[str, Any]:
        """Return everything that identifies the measurement of a layer: sizes, repeats and overrides."""
        sizes = {symbol: self.sizes[symbol] for symbol in row.symbols}
        return {"sizes": sizes, "repeats": self.repeats, "overrides": [*row.overrides, *self.overrides]}


def trained_names() -> list[str]:
    """List the studies that have arms."""
    return [name for name in study_names() if not is_measured(name)]


def is_measured(name: str) -> bool:
    """Whether there is a study of this name that has layers; False if its file cannot be read, as `load_study` says."""
    try:
        content = read_yaml(find_study(name) / "study.yaml") if name in study_names() else None
    except UserError:
        return False
    return isinstance(content, dict) and "layers" in content


def load_measured(name: str, typed: Sequence[str] = ()) -> MeasuredStudy:
    """Load the measured study called `name`, with the user's arguments applied.

    Args:
        name: of a study with layers.
        typed: the arguments: `scale=full` chooses sizes from the file; `n=64,128` (and d, k, r) replaces sizes;
            `repeats=3`; overrides of the model.

    Raises:
        UserError: the file is not valid, or an argument does not apply to layers.
    """
    file = find_study(name) / "study.yaml"
    content = read_yaml(file)
    check_keys(file, content, allowed={"title", "layers", "sizes", "repeats"})
    need(file, content, "layers", "sizes", "repeats")
    rows, scales = _rows(file, content["layers"]), _scales(file, content["sizes"])
    words = dict(map(split_override, typed))
    model = [word for word in typed if re.match(r"[+~]*model\b.*=", word)]
    for key in words.keys() - set(map(override_key, model)):
        if key not in (*SYMBOLS, "scale", "repeats"):
            raise UserError(
                f"{name} is measured, not trained, so that {key} says nothing of it: it takes n, d, k, r, repeats, "
                "scale, runs_dir and keys of the model, such as model.encoder.cell=lstm"
            )
    scale = words.get("scale", next(iter(scales)))
    if scale not in scales:
        raise UserError(f"scale={scale}: {did_you_mean(scale, scales)}")
    sizes = scales[scale] | {key: _numbers(f"{key}={words[key]}", words[key]) for key in SYMBOLS if key in words}
    _check_odd(sizes)
    repeats = _numbers(f"repeats={words['repeats']}", words["repeats"]) if "repeats" in words else [content["repeats"]]
    if len(repeats) != 1 or type(repeats[0]) is not int or repeats[0] < 1:
        where = "" if "repeats" in words else f"{file}: "
        raise UserError(f"{where}repeats is one whole number above 0, such as repeats=5")
    return MeasuredStudy(name, str(content.get("title") or name), rows, sizes, repeats[0], model)


def outweighs(where: str) -> tuple[str, str] | None:
    """Split a regime such as `n ≫ d` into the larger and the smaller size; None for `anywhere`."""
    large, _, small = where.partition(" ≫ ")
    return None if where == ANYWHERE else (large, small)


def _rows(file: Path, layers: Any) -> list[Row]:
    if not isinstance(layers, dict) or not layers:
        raise UserError(f"{file} names no layer: a row is NAME: with {', '.join(sorted(_ROW))} below")
    return [_row(f"{file}: layers.{name}", str(name), row) for name, row in layers.items()]


def _row(where: str, name: str, row: Any) -> Row:
    if not re.fullmatch(r"\w+", name):
        raise UserError(f"{where}: {name!r} cannot name a layer; use letters, digits and '_'")
    if not isinstance(row, dict) or row.keys() != _ROW:
        raise UserError(f"{where} must have {', '.join(sorted(_ROW))}, and nothing else")
    if not isinstance(row["paper"], dict) or row["paper"].keys() != _PAPER:
        raise UserError(f"{where}.paper must have complexity, sequential and path, and nothing else")
    if not isinstance(row["overrides"], list) or not all(isinstance(one, str) for one in row["overrides"]):
        raise UserError(f"{where}.overrides must be a list, such as [model/encoder=recurrent]")
    for key in ("operations", "path"):
        _check_exponents(f"{where}.{key}", row[key])
    if not isinstance(row["flops"], dict):
        raise UserError(f"{where}.flops must map a regime to exponents, such as anywhere: {{n: 1, d: 2}}")
    for regime, expected in row["flops"].items():
        pair = outweighs(str(regime))
        _check_exponents(f"{where}.flops.{regime}", expected)
        if pair and (pair[0] == pair[1] or not {*pair} <= expected.keys()):
            raise UserError(f"{where}.flops: {regime!r} is unknown; say anywhere, or n ≫ d, of sizes in its exponents")
    made = Row(name, **row)
    if not {"n", "d"} <= {*made.symbols}:
        raise UserError(f"{where}.flops must say what is expected of n and d, such as anywhere: {{n: 1, d: 2}}")
    return made


def _check_exponents(where: str, expected: Any) -> None:
    if not isinstance(expected, dict) or not all(
        key in SYMBOLS and type(value) is int for key, value in expected.items()
    ):
        raise UserError(f"{where} must map sizes ({', '.join(SYMBOLS)}) to exponents, such as {{n: 1, d: 2}}")


def _scales(file: Path, scales: Any) -> dict[str, Sizes]:
    if not isinstance(scales, dict) or not scales or not all(isinstance(sizes, dict) for sizes in scales.values()):
        raise UserError(f"{file}: sizes must map a scale, such as pocket, to lists of n, d, k and r")
    for scale, sizes in scales.items():
        if sizes.keys() != {*SYMBOLS}:
            raise UserError(f"{file}: sizes.{scale} must have {', '.join(SYMBOLS)}, and nothing else")
        for symbol, values in sizes.items():
            if not isinstance(values, list) or not values or any(type(v) is not int or v < 1 for v in values):
                raise UserError(f"{file}: sizes.{scale}.{symbol} must be a list of whole numbers above 0")
    return {scale: {symbol: sorted({*values}) for symbol, values in sizes.items()} for scale, sizes in scales.items()}


def _numbers(where: str, text: str) -> list[int]:
    """Parse numbers separated by commas, and return them sorted, without duplicates."""
    words = text.split(",")
    if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
        raise UserError(f"{where}: whole numbers above 0, by commas, such as n=32,64,128")
    return sorted({int(word) for word in words})


def _check_odd(sizes: Mapping[str, Sequence[int]]) -> None:
    for symbol in ("k", "r"):
        if even := [size for size in sizes[symbol] if size % 2 == 0]:
            raise UserError(f"{symbol}={even[0]}: it must be odd, for as many neighbours on either side")
