"""What is asked of a study in a notebook: `etude.results` and `etude.compare`."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etude import report
from etude.config.quoting import quote
from etude.errors import UserError
from etude.files import typed_path
from etude.search.sweep_file import names_file, runs_of
from etude.store.find_run import default_runs_dir
from etude.study.metrics import typed_metric

if TYPE_CHECKING:
    from pandas import DataFrame


def results(
    study: str,
    runs_dir: str | Path | None = None,
    where: Mapping[str, object] | None = None,
    metrics: Sequence[str] = (),
) -> "DataFrame":
    """Return a pandas DataFrame with a row for each finished run of a study, ordered by arm and seed.

    Its columns stand in `etude.report.frame`; `attrs["notes"]` says which runs were left out, and why.

    Args:
        study: its name, such as "table3"; that of a folder of runs that belong to none, such as "single"; a sweep file,
            "sweeps/mine.yaml"; or a CSV of any trainer's runs, "runs.csv", with the columns arm, seed and a metric.
        runs_dir: the folder with the runs; None: that of the config. A CSV needs none.
        where: which setting to select if there are several, such as {"scale": "pocket"}.
        metrics: columns of a CSV to compare, and which way they are better: ["test_loss:lower:log", "accuracy:higher"].

    Raises:
        UserError: there is no such study or file, or no finished run of it matches `where`.
    """
    found = _find(study, runs_dir, where, metrics=metrics)
    rows = found.frame()
    rows.attrs["notes"] = found.notes
    return rows


def compare(
    study: str,
    baseline: str = "",
    *,
    runs_dir: str | Path | None = None,
    where: Mapping[str, object] | None = None,
    metrics: Sequence[str] = (),
) -> report.Report:
    """Compare the arms of a study: a table that shows itself, in a terminal or a notebook.

    Args:
        study, runs_dir, where, metrics: as for `etude.results`.
        baseline: the arm that the others are compared with; by default, those that the study says.

    Raises:
        UserError: there is no such study or arm, or no finished run matches `where`.
    """
    return report.make_report(_find(study, runs_dir, where, baseline, metrics), baseline)


def _find(
    study: str,
    runs_dir: str | Path | None,
    where: Mapping[str, object] | None,
    baseline: str = "",
    metrics: Sequence[str] = (),
) -> report.Results:
    if where is not None and not isinstance(where, Mapping):
        raise UserError(f'where={where!r}: give keys and values, such as {{"scale": "pocket"}}')
    setting = {key: value if isinstance(value, str) else quote(value) for key, value in (where or {}).items()}
    if where and isinstance(seeds := where.get("seed"), Sequence) and not isinstance(seeds, str):
        setting["seed"] = ",".join(map(str, seeds))
    metrics = [metrics] if isinstance(metrics, str) else metrics
    if Path(study).suffix.lower() == ".csv":
        asked = [typed_metric(word, "metrics: ") for word in metrics]
        return report.results_of_csv(study, "", setting, baseline, asked)
    if metrics:
        raise UserError(
            f"metrics={[*metrics]}: they are columns of a CSV, and those of {study} are its own: leave it out"
        )
    if names_file(study):
        words = [f"runs_dir={quote(str(runs_dir))}"] * bool(runs_dir) + [f"{k}={v}" for k, v in setting.items()]
        return report.results_of_sweep(shlex.quote(study), (run for _, run in runs_of(study, words)))
    return report.results(study, typed_path(str(runs_dir or default_runs_dir())), setting)
