"""The frame: a row a run, as a pandas DataFrame or a CSV, and read back from a CSV of étude's or of anybody's.

The columns; a value that a run does not have is missing:

    study, arm, seed, id            which run it is
    state, diverged                 finished or diverged, and how
    <key of a metric>               such as test_chrf: the metrics that the study declares; by default
    test_perplexity, test_bleu      these two
    test_paper_bleu, valid_perplexity
    test_sentences, test_tokens, test_pairs    those that were translated, and those of the whole set
    <config key>                    such as model.heads or model/position: what differs between any two of the runs,
                                    what the study varies or shows, and the choices data, scale, budget and task
    overrides                       what was typed beside the arm
    written                         which of the config keys were written as ${...}, and so follow from others, as JSON
    text, store, training           fingerprints: the text; text and subwords; what shares one training but for the seed
    test_signature, test_paper_signature
    parameters, steps, tokens, flops, seconds, decoding_seconds
    code, results_version           same | other | unchecked: whether today's code made the run; the number of its code
    path                            the run directory
"""

import csv
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.config.difference import difference
from etude.errors import UserError, did_you_mean
from etude.files import format_json, replacing, typed_path
from etude.paths import find_file, folders_of
from etude.report.confounds import comparable_config
from etude.store.provenance import code_of
from etude.store.records import Run
from etude.store.run_dir import RunDir
from etude.store.run_state import State
from etude.study.metrics import Metric
from etude.study.study import Study, value_at
from etude.yaml_file import read_yaml

if TYPE_CHECKING:
    from pandas import DataFrame

_SHARED_CHOICES = ("data", "scale", "budget", "task")
_COSTS = ("parameters", "steps", "tokens", "flops", "seconds", "decoding_seconds")
_FURTHER_NUMBERS = ("test.paper_bleu", "valid.perplexity", "test.sentences", "test.tokens", "test.pairs")
_TEXTS = ("id", "diverged", "store", "test.paper_signature")
Names = dict[str, str]  # column -> dotted key of a result
_OF_THE_RUN = {"study", "arm", "seed"}
_MISSING = ("", "na", "n/a", "nan", "none", "null")  # as R, pandas and others write it
_NOT_SO = (*_MISSING, "false", "f", "no", "n", "0", "0.0")


def frame(study: Study, runs: Sequence[Run]) -> "DataFrame":
    """Make a DataFrame with one row per run, in the order given."""
    import pandas as pd

    keys = _config_columns(study, runs) if runs else []
    rows = [_row(study, run, keys) for run in runs]
    return pd.DataFrame({key: pd.array([row[key] for row in rows]) for key in rows[0]} if rows else {})


def _row(study: Study, run: Run, keys: Sequence[str]) -> dict[str, Any]:
    numbers, texts = _result_columns(study.metrics)
    found = {column: value_at(run.result, key) for column, key in (numbers | texts).items()}
    version = run.result.get("results_version")
    return {
        "study": run.study,
        "arm": run.arm,
        "seed": run.seed,
        "id": found["id"] or run.run_dir.id.rpartition("-")[2] or None,  # at W&B a run has another name
        "state": str(run.state),
        "diverged": run.divergence,
        **{key: _value_of(run, key) for key in keys},
        **{key: value for key, value in found.items() if key not in ("id", "diverged")},
        "overrides": " ".join(f"{key}={value}".replace(" ", "") for key, value in run.typed.items()),
        "written": json.dumps(written) if (written := _interpolations(run, keys)) else None,
        "text": run.text or None,
        "training": run.training,
        "code": run.code and str(run.code),
        "results_version": version if isinstance(version, int) else None,
        "path": str(run.run_dir.path),
    }


def _result_columns(metrics: Mapping[str, Metric]) -> tuple[Names, Names]:
    """Return the columns of numbers, and those of words, with their keys in a result."""
    numbers = (*(key for metric in metrics.values() for key in metric.parts), *_FURTHER_NUMBERS, *_COSTS)
    texts = (*(metric.signature for metric in metrics.values() if metric.signature), *_TEXTS)
    return {key.replace(".", "_"): key for key in numbers}, {key.replace(".", "_"): key for key in texts}


def _config_columns(study: Study, runs: Sequence[Run]) -> list[str]:
    """Return the groups and keys that the study shows or changes, or that differ as written, and shared choices."""
    first, shown = runs[0], [key.removeprefix("choices.") for key in study.columns.values()]
    before, written = comparable_config(first), set[str]()
    for run in runs[1:]:
        found = difference(before, comparable_config(run), (first.written, run.written))
        written |= found.choices.keys() | found.values.keys()
    keys = {*_SHARED_CHOICES, *study.changed, *written}
    known = {key for key in keys if any(_value_of(run, key) is not None for run in runs)}
    return list(dict.fromkeys([*shown, *sorted(known)]))


def _interpolations(run: Run, keys: Sequence[str]) -> dict[str, str]:
    """Return the values of some keys that were written as interpolations, as far as the run kept what was written."""
    written = {key: value_at(run.written, key) for key in keys}
    return {key: value for key, value in written.items() if isinstance(value, str) and "${" in value}


def _value_of(run: Run, key: str) -> Any:
    """Return the choice in a config group or the value of a key; lists and mappings as JSON, to fit one cell."""
    value = run.choices.get(key, value_at(run.config, key))
    return json.dumps(value) if isinstance(value, list | dict) else value


def as_json(rows: "DataFrame") -> str:
    """Format a frame as a JSON list of objects. JSON has no infinity or NaN: these become null."""
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    infinite = (float("inf"), -float("inf"))
    return format_json([{k: None if v in infinite else v for k, v in record.items()} for record in records])


def write_parquet(rows: "DataFrame", file: Path) -> None:
    """Write a frame to a Parquet file; a column that mixes numbers and words becomes one of words.

    Raises:
        UserError: pyarrow is not installed, or the file cannot be written.
    """
    mixed = {key: "string" for key in rows if rows[key].dtype == object}
    with replacing(file) as temporary:
        try:
            rows.astype(mixed).to_parquet(temporary)
        except ImportError as error:
            raise UserError("--parquet needs pyarrow: pip install pyarrow, or write --csv instead") from error


def read_csv(file: Path, name: str, metrics: Mapping[str, Metric]) -> list[Run]:
    """Read a frame that `frame` wrote, or any CSV with the columns arm and seed and a column for a metric.

    Columns of étude's are what the head of this file says; of the others, those that are named like a config key or
    group belong to the config, unless they hold a measured number, another one in each run of an arm and not the same
    in all arms. The rest is not looked at. In a CSV of another trainer, what differs within an arm tells settings
    apart.

    Args:
        file: the CSV.
        name: the name of the study.
        metrics: the metrics; the column of one is its key, as it is or with _ in place of dots.

    Raises:
        UserError: a column is missing, or a cell is not what its column needs; the sentence names file and line.
    """
    numbers, texts = _result_columns(metrics)
    columns = {key.replace(".", "_"): metric for metric in metrics.values() for key in metric.parts}
    header, rows = _respelt(*read_cells(file), columns)
    single = {key: value for key, value in read_yaml(find_file("conf", "train.yaml")).items() if key not in _OF_THE_RUN}
    others = [column for column in header if column not in numbers | texts]
    foreign = "results_version" not in header
    for column in ("arm", "seed"):
        if column not in header:
            raise UserError(f"{file}, line 1: there is no column {column!r}; {did_you_mean(column, header)}")
    settings = _settings([row for _, row in rows], others, single) if foreign else others
    if not columns.keys() & set(header):
        raise UserError(
            f"{file}, line 1: there is no column of a metric; there should be one of {', '.join(columns)}: "
            "--metric NAME:lower or NAME:higher (in Python, metrics=['NAME:lower']) takes another, NAME:lower:log "
            "compares logarithms"
        )
    within = _differing([row for _, row in rows], settings) if foreign else []
    runs = []
    for line, row in rows:
        place = f"{file}, line {line}"
        if not row["arm"]:
            raise UserError(f"{place}: arm is empty: name the arm of this run")
        result = _result(place, row, columns, numbers, texts)
        config = {column: row[column] for column in settings if row[column]}
        content, as_written = _config(config, single), _config(config, single)
        interpolations = _value(row.get("written", ""))
        for key, value in interpolations.items() if isinstance(interpolations, dict) else ():
            _put(as_written, key, value)
        runs.append(
            Run(
                RunDir(file / f"line {line}"),  # below which no file lies
                name,
                row["arm"],
                int(_number(place, "seed", row["seed"], whole=True)),
                content,
                result,
                State.DIVERGED if "diverged" in result else State.FINISHED,
                result.get("diverged"),
                overrides=row.get("overrides", "").split() or [f"{key}={row[key]}" for key in within if row[key]],
                changed=float(line),
                code=code_of(result) if "results_version" in row else None,
                text=row.get("text", ""),
                trained_as=row.get("training") or row["arm"],
                as_written=as_written if as_written != content else None,
            )
        )
    return runs


def as_columns(file: Path, metrics: Iterable[Metric]) -> list[Metric]:
    """Return the metrics; one whose key is the name of a column, such as val/loss, is that column and no quotient.

    Raises:
        UserError: as in `read_cells`.
    """
    header = read_cells(file)[0]
    return [replace(one, key=_spell(one.key)) if one.key in header else one for one in metrics]


def _spell(column: str) -> str:
    return re.sub("[./]", "_", column)


def _respelt(
    header: Sequence[str], rows: Sequence[tuple[int, dict[str, str]]], wanted: Collection[str]
) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return a CSV in which the wanted columns that have dots or slashes in their names have _ in their place."""
    names = [_spell(one) if _spell(one) in wanted and _spell(one) not in header else one for one in header]
    return names, [(line, dict(zip(names, row.values(), strict=True))) for line, row in rows]


def _settings(rows: Sequence[Mapping[str, str]], columns: Collection[str], single: Mapping[str, Any]) -> list[str]:
    """Return the columns that are named as config is, and do not look measured."""
    groups = {entry.name for folder in folders_of("conf") if folder.is_dir() for entry in folder.iterdir()}
    words = groups | {key for key, value in single.items() if isinstance(value, str)}
    named = [column for column in columns if re.split(r"[./]", column)[0] in groups | {*single} - _OF_THE_RUN]
    return [column for column in named if not _is_measured(rows, column, is_word=column in words)]


def _is_measured(rows: Sequence[Mapping[str, str]], column: str, is_word: bool) -> bool:
    """Return whether a column holds a number in each row, and in each run of an arm another; or, for a word, 0.51.

    Where the numbers of all arms are the same, as with model.heads 4 and 8 for each, they were chosen.
    """
    cells: dict[str, list[str]] = {}
    for row in rows:
        cells.setdefault(row["arm"], []).append(row[column])
    values = [_value(text) for texts in cells.values() for text in texts]
    if is_word and any(isinstance(value, float) for value in values):
        return True
    several = [texts for texts in cells.values() if len(texts) > 1]
    if not several or not all(isinstance(value, int | float) for value in values):
        return False
    chosen = len(cells) > 1 and len({frozenset(texts) for texts in cells.values()}) == 1
    return not chosen and all(len({*texts}) == len(texts) for texts in several)


def _differing(rows: Sequence[Mapping[str, str]], columns: Iterable[str]) -> list[str]:
    """Return the columns in which rows of one arm differ."""
    first: dict[str, Mapping[str, str]] = {}
    pairs = [(first.setdefault(row["arm"], row), row) for row in rows]
    return [column for column in columns if any(one[column] != other[column] for one, other in pairs)]


def study_in(file: Path) -> str:
    """Return the study that all runs in a CSV are of by its column `study`, or "".

    Raises:
        UserError: as in `read_cells`.
    """
    names = {row.get("study", "") for _, row in read_cells(file)[1]}
    return names.pop() if len(names) == 1 else ""


def read_cells(file: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Read the names of a CSV's columns, and of each row its line and its cells.

    Raises:
        UserError: it cannot be read, or is no table.
    """
    try:
        lines = typed_path(str(file)).read_text(encoding="utf-8-sig").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError(f"{file} cannot be read: {why}; --from takes a CSV with the columns arm and seed") from error
    reader = csv.reader(lines)
    try:
        header, *rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if cells] or [(1, [])]
    except csv.Error as error:
        raise UserError(f"{file}, line {reader.line_num} is not a CSV: {error}") from error
    names = header[1]
    if not rows:
        raise UserError(f"{file} has no rows below its header: it needs one a run, with arm, seed and a metric")
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UserError(f"{file}, line 1: the column {twice!r} is there twice: rename one")
    for line, cells in rows:
        if len(cells) != len(names):
            raise UserError(f"{file}, line {line}: {len(cells)} cells, where line 1 names {len(names)} columns")
    return names, [(line, dict(zip(names, cells, strict=True))) for line, cells in rows]


def _result(
    place: str, row: Mapping[str, str], metrics: Mapping[str, Metric], numbers: Names, texts: Names
) -> dict[str, Any]:
    """Make what `result.json` would hold of the numbers and words of a row."""
    found: dict[str, Any] = {}
    row = {name: "" if name in numbers and text.lower() in _MISSING[:3] else text for name, text in row.items()}
    for column, key in (numbers | texts).items():
        if (text := row.get(column)) and not (key == "diverged" and text.lower() in _NOT_SO):
            _put(found, key, _number(place, column, text) if column in numbers else text)
    if not any(row.get(column) for column in metrics) and "diverged" not in found:
        raise UserError(f"{place}: no number of {', '.join(metrics)}: give one, or leave the line out")
    first = next((one for one in metrics if one in row), "")
    for column in (one for one in numbers if row.get(one)):
        value = value_at(found, numbers[column])
        if column in metrics and (math.isinf(value) or (math.isnan(value) and column == first)):
            found.setdefault("diverged", f"its {metrics[column].label} is {row[column]}")
        elif not math.isfinite(value):  # as pandas writes what was not measured
            _put(found, numbers[column], None)
    if "results_version" in row:  # that of a run which today's code may not reproduce is none
        version = "" if row.get("code", "same") != "same" else row["results_version"]
        known = version.lower() not in _MISSING
        found["results_version"] = int(_number(place, "results_version", version, whole=True)) if known else None
    return found


def _config(row: Mapping[str, str], single: Mapping[str, Any]) -> dict[str, Any]:
    """Make the part of the config that a row tells; `single` are the keys without a dot, each with its default."""
    sections = [key for key, value in single.items() if isinstance(value, dict)]
    config: dict[str, Any] = {}
    choices: dict[str, Any] = {}
    for column, text in row.items():
        value = _value(text)
        is_group = "/" in column or any((folder / column).is_dir() for folder in folders_of("conf"))
        if is_group and not isinstance(value, dict):
            choices[column] = text
        elif is_group or "." in column or (column in single and isinstance(value, dict) == (column in sections)):
            _put(config, column, value)
    return config | ({"choices": choices} if choices else {})


def _put(content: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a dotted key."""
    *sections, name = key.split(".")
    for section in sections:
        if not isinstance(content.get(section), dict):
            content[section] = {}
        content = content[section]
    content[name] = value


def _value(text: str) -> Any:
    with suppress(ValueError):
        return json.loads({"True": "true", "False": "false"}.get(text, text))
    return text


def _number(place: str, column: str, text: str, whole: bool = False) -> float:
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        if not whole or float(text).is_integer():
            return float(text)
    raise UserError(f"{place}: {column} is {text!r}, which is not a {'whole ' * whole}number")


def refuse_twice(file: Path, groups: Sequence[Sequence[Run]]) -> None:
    """Check that within each setting, no config of an arm has a seed twice.

    Raises:
        UserError: one has; the sentence names the lines.
    """
    for group in groups:
        before: dict[tuple[str, int], list[Run]] = {}
        for run in group:
            same = before.setdefault((run.arm, run.seed), [])
            other = next((one for one in same if one.differs_only_in_seed(run)), None)
            same.append(run)
            if other:
                lines = " and ".join(f"{one.changed:.0f}" for one in (other, run))
                raise UserError(
                    f"{file}, lines {lines}: {run.arm} has seed {run.seed} twice in one setting; columns such as "
                    "model.heads or data tell settings apart"
                )
