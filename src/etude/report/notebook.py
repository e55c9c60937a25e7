"""What is asked of a study in a notebook: `etude.results` and `etude.compare`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from etude import report
from etude.config.quoting import quote
from etude.search.sweep_file import names_file, runs_of

if TYPE_CHECKING:
    from pandas import DataFrame


def results(study: str, runs_dir: str | Path = "runs", where: Mapping[str, str] | None = None) -> "DataFrame":
    """Return a pandas DataFrame with a row for each finished run of a study, ordered by arm and seed.

    Its columns stand in `etude.report.frame`; `attrs["notes"]` says which runs were left out, and why.

    Args:
        study: its name, such as "table3"; that of a folder of runs that belong to none, such as "single"; a sweep file,
            "sweeps/mine.yaml"; or a CSV of any trainer's runs, "runs.csv", with the columns arm, seed and a metric.
        runs_dir: the folder with the runs; a CSV needs none.
        where: which setting to select if there are several, such as {"scale": "pocket"}.

    Raises:
        UserError: there is no such study or file, or no finished run of it matches `where`.
    """
    found = _find(study, runs_dir, where)
    rows = found.frame()
    rows.attrs["notes"] = found.notes
    return rows


def compare(
    study: str, baseline: str = "", *, runs_dir: str | Path = "runs", where: Mapping[str, str] | None = None
) -> report.Report:
    """Compare the arms of a study: a table that shows itself, in a terminal or a notebook.

    Args:
        study, runs_dir, where: as for `etude.results`.
        baseline: the arm that the others are compared with; by default, those that the study says.

    Raises:
        UserError: there is no such study or arm, or no finished run matches `where`.
    """
    return report.make_report(_find(study, runs_dir, where, baseline), baseline)


def _find(study: str, runs_dir: str | Path, where: Mapping[str, str] | None, baseline: str = "") -> report.Results:
    if Path(study).suffix == ".csv":
        return report.results_of_csv(study, "", where, baseline)
    if names_file(study):
        planned = runs_of(study, [f"runs_dir={quote(str(runs_dir))}", *(f"{k}={v}" for k, v in (where or {}).items())])
        return report.results_of_sweep(study, (run for _, run in planned))
    return report.results(study, runs_dir, where)
