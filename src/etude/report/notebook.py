"""What is asked of a study in a notebook: `etude.results` and `etude.compare`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from etude import report

if TYPE_CHECKING:
    from pandas import DataFrame


def results(study: str, runs_dir: str | Path = "runs", where: Mapping[str, str] | None = None) -> "DataFrame":
    """Return a pandas DataFrame with a row for each finished run of a study, ordered by arm and seed.

    Its columns stand in `etude.report.frame`; `attrs["notes"]` says which runs were left out, and why.

    Args:
        study: its name, such as "table3"; or that of a folder of runs that belong to none, such as "single".
        runs_dir: the folder with the runs.
        where: which setting to select if there are several, such as {"scale": "pocket"}.

    Raises:
        UserError: there is no such study, or no finished run of it matches `where`.
    """
    found = report.results(study, runs_dir, where)
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
    return report.report(study, Path(runs_dir), where or {}, baseline)
