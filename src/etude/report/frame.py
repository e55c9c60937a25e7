"""Runs as a tidy table, one row per run, for notebooks and other tools.

Every row has all columns; a value that a run does not have is None:

    study, arm, seed, id            which run it is
    <config key>                    what the study varies, such as model.heads or model/position
    <key of a metric>               such as test_chrf: the metrics that the study declares; by default
    test_perplexity, test_bleu      these two
    test_paper_bleu, valid_perplexity
    test_sentences, test_tokens     those that were translated, and those of the whole set, which perplexity is of
    test_signature, test_paper_signature, store
    parameters, steps, tokens, flops, seconds, decoding_seconds
    code                            same | other | unknown | unchecked: whether today's code made the run
    diverged                        how the run diverged, if it did
    path                            the run directory
"""

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.files import format_json, replacing
from etude.runs.records import Run
from etude.studies.study import Study, value_at

Frame = list[dict[str, Any]]

_FURTHER_SCORES = ("test.paper_bleu", "valid.perplexity", "test.sentences", "test.tokens")
_COSTS = ("parameters", "steps", "tokens", "flops", "seconds", "decoding_seconds")


def frame(study: Study, runs: Sequence[Run]) -> Frame:
    """Make one row per run, in the order given."""
    shown = [key.removeprefix("choices.") for key in study.columns.values()]
    keys = [*shown, *sorted(study.changed.difference(shown))]
    metrics = study.metrics.values()
    signatures = (*(metric.signature for metric in metrics if metric.signature), "test.paper_signature", "store")
    results = (*(metric.key for metric in metrics), *_FURTHER_SCORES, *signatures, *_COSTS)
    return [
        {
            "study": run.study,
            "arm": run.arm,
            "seed": run.seed,
            "id": run.result.get("id", run.run_dir.path.name.rpartition("-")[2]),  # at W&B a run has another name
            **{key: _cell(run, key) for key in keys},
            **{key.replace(".", "_"): value_at(run.result, key) for key in results},
            "code": str(run.code),
            "diverged": run.divergence,
            "path": str(run.run_dir.path),
        }
        for run in runs
    ]


def _cell(run: Run, key: str) -> Any:
    """Return the choice in a config group or the value of a key; lists and mappings as JSON, to fit one cell."""
    value = run.choices.get(key, value_at(run.config, key))
    return json.dumps(value) if isinstance(value, list | dict) else value


def as_csv(rows: Frame) -> str:
    """Format the rows as CSV with a header; numbers in full precision."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0] if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(rows: Frame) -> str:
    """Format the rows as a JSON list of objects. JSON has no infinity or NaN: these become null."""
    finite = [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        for row in rows
    ]
    return format_json(finite)


def write_parquet(rows: Frame, file: Path) -> None:
    """Write the rows to a Parquet file; a column that mixes numbers and strings becomes one of strings.

    Raises:
        UserError: pyarrow is not installed, or the file cannot be written.
    """
    try:
        from pyarrow import Table, parquet
    except ImportError as error:
        raise UserError("--parquet needs pyarrow: pip install pyarrow, or write --csv instead") from error
    columns = {key: _convert([row[key] for row in rows]) for key in rows[0]}
    with replacing(file) as temporary:
        parquet.write_table(Table.from_pydict(columns), temporary)


def _convert(values: list[Any]) -> list[Any]:
    """Convert a column to one type: ints among floats to float, other mixtures to str."""
    types = {type(value) for value in values if value is not None}
    if len(types) < 2:
        return values
    convert = float if types == {int, float} else str
    return [None if value is None else convert(value) for value in values]
