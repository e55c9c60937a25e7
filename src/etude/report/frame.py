"""Runs as a tidy frame, one row a run, for notebooks and other people's tools.

Columns, all of which every row has, empty (None) where a run has none:

    study, arm, seed, id            which run it is
    <config key>                    what the study varies, such as model.heads or model/position
    <key of a metric>               such as test_chrf: what the study declares; where it declares nothing
    test_perplexity, test_bleu
    test_paper_bleu, valid_perplexity
    test_sentences, test_tokens
    test_signature, test_paper_signature, store
    parameters, steps, tokens, flops, seconds, decoding_seconds
    code                            same | other | unknown | unchecked: was it made by the code of today?
    diverged                        how, where the run did
    path                            of its directory
"""

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.files import replacing
from etude.runs.records import Run
from etude.studies.study import Study, value_at

Frame = list[dict[str, Any]]

_BESIDE = ("test.paper_bleu", "valid.perplexity", "test.sentences", "test.tokens")
_COSTS = ("parameters", "steps", "tokens", "flops", "seconds", "decoding_seconds")


def frame(study: Study, runs: Sequence[Run]) -> Frame:
    """The runs in the order given."""
    shown = [key.removeprefix("choices.") for key in study.columns.values()]
    keys = [*shown, *sorted(study.changed.difference(shown))]
    metrics = study.metrics.values()
    signatures = (*(metric.signature for metric in metrics if metric.signature), "test.paper_signature", "store")
    results = (*(metric.key for metric in metrics), *_BESIDE, *signatures, *_COSTS)
    return [
        {
            "study": study.name,
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
    """The choice in a group, or the value of a key; lists and mappings as JSON, for a cell holds one value."""
    value = run.choices.get(key, value_at(run.config, key))
    return json.dumps(value) if isinstance(value, list | dict) else value


def as_csv(rows: Frame) -> str:
    """With a header; numbers in full."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0] if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(rows: Frame) -> str:
    """A list of objects. JSON has no infinity: what diverged is null."""
    finite = [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        for row in rows
    ]
    return json.dumps(finite, indent=2, ensure_ascii=False) + "\n"


def write_parquet(rows: Frame, file: Path) -> None:
    """One Parquet file; a column of numbers and words becomes one of words.

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
    """Values of one type; whole numbers among fractions become fractions."""
    types = {type(value) for value in values if value is not None}
    if len(types) < 2:
        return values
    convert = float if types == {int, float} else str
    return [None if value is None else convert(value) for value in values]
