"""Read the runs of a study from `runs/`, compare its arms, and report them beside the paper's numbers.

Needs neither torch nor W&B.

    from etude.report import results

    found = results("table3", where={"scale": "pocket"})
    found.rows                           # one dict per run; found.frame() returns them as a pandas.DataFrame
    found.arms["A1"][0].result["test"]   # the test scores of a run
    found.compare("base").arms           # means, intervals, differences from base and their tests

`results` never mixes settings, and lists in `notes` what it left out. Only `runs_dir` is read, so run directories may
be copied there from any machine.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from etude.errors import UserError, did_you_mean
from etude.report import frame
from etude.report.compare import compare
from etude.report.comparison import Compared
from etude.report.render import latex
from etude.report.render.rows import Rows, make_rows
from etude.report.render.terminal import RenderedTable, markdown
from etude.report.search import read_finished
from etude.report.selection import Selection, select
from etude.report.typed_runs import make_study, only_arms
from etude.report.wording import format_count
from etude.runs.records import Run, read_rows
from etude.runs.run_dir import RunDir
from etude.runs.table import read_runs, runs_of
from etude.studies.study import Study, load_study, study_names

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Results:
    """The runs of a study that belong in one table. If the study tunes its arms: the runs with the shared value."""

    study: Study
    selection: Selection

    @property
    def notes(self) -> list[str]:
        """One sentence for each group of runs that was left out."""
        return self.selection.notes

    @property
    def runs(self) -> list[Run]:
        """The finished runs, ordered by arm and seed."""
        order = list(self.study.arms)
        return sorted(self.selection.runs, key=lambda run: (order.index(run.arm), run.seed))

    @property
    def arms(self) -> dict[str, list[Run]]:
        """The finished runs of each arm; an empty list for an arm that was not run."""
        return {arm: [run for run in self.runs if run.arm == arm] for arm in self.study.arms}

    @property
    def rows(self) -> frame.Frame:
        """One dict per run, all with the same keys (listed in `frame.py`)."""
        return frame.frame(self.study, self.runs)

    def frame(self) -> "DataFrame":
        """Return the rows as a pandas DataFrame.

        Raises:
            UserError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise UserError("frame() needs pandas: pip install pandas, or take .rows, one dict a run") from error
        return DataFrame(self.rows)

    def compare(self, baseline: str = "") -> Compared:
        """Compare every arm with `baseline`; by default with the arm that the study compares it with.

        Raises:
            UserError: there is no such arm.
        """
        if baseline and baseline not in self.study.arms:
            raise UserError(f"{self.study.name} has no arm {baseline!r}; {did_you_mean(baseline, self.study.arms)}")
        study = replace(self.study, baseline=baseline, against={}) if baseline else self.study
        return compare(study, self.selection)


@dataclass(frozen=True)
class Report:
    """The comparison of a study's arms as a table that rich can print, and that converts to Markdown and LaTeX."""

    compared: Compared
    rows: Rows

    def __rich__(self) -> RenderedTable:
        return RenderedTable(self.rows)

    def markdown(self) -> str:
        """Render the table and its notes in Markdown."""
        return markdown(self.rows)

    def latex(self, notes: latex.Notes = "full", columns: int = 2) -> str:
        """Render the table and its notes for `\\input`; arguments as in `etude.report.render.latex.latex`."""
        return latex.latex(self.rows, notes, columns)


def results(study: str, runs_dir: str | Path = "runs", where: Mapping[str, str] | None = None) -> Results:
    """Read and select the runs of a study.

    Args:
        study: its name, such as "table3"; or that of a folder of runs that belong to none, such as "single", whose
            overrides then make the arms.
        runs_dir: the folder with the runs.
        where: which setting to select if there are several, such as {"scale": "pocket"}.

    Raises:
        UserError: there is no such study, or no finished run of it matches `where`.
    """
    rows, notes = read_rows(Path(runs_dir) / study) if study not in study_names() else ([], [])
    if rows:
        found, rows = make_study(study, rows)
        runs, unreadable = runs_of(found, rows, notes)
    else:
        found = load_study(study)
        runs, unreadable = read_runs(found, Path(runs_dir))
    if not any(run.finished for run in runs):
        if not Path(runs_dir).is_dir():
            raise UserError(f"there is no folder {runs_dir}: name that of the runs with runs_dir=DIR, or train some")
        there = "" if str(runs_dir) == "runs" else f" runs_dir={runs_dir}"
        way_out = f"etude status {study}" if rows else f"this makes them: etude sweep {study}"
        raise UserError(f"{runs_dir} holds no finished run of {study}; {way_out}{there}")
    selection = select(found, runs, where or {}, unreadable)
    return Results(only_arms(found, selection.runs) if rows else found, selection)


def results_of_sweep(name: str, planned: Iterable[RunDir]) -> Results:
    """Read the runs of a sweep file, all of them in one table.

    Args:
        name: the arguments that started it, such as "sweeps/learning_rate.yaml run_cap=40".
        planned: the directory of each run.

    Raises:
        UserError: none is finished.
    """
    wanted = dict.fromkeys(planned)
    found, notes = read_finished(wanted)
    if not found:
        raise UserError(" ".join([f"no run of this sweep is finished; this makes them: etude sweep {name}", *notes]))
    if missing := sum(not run.finished for run in wanted):
        notes.append(f"Not finished: {format_count(missing)} of the sweep.")
    study, runs = make_study(Path(shlex.split(name)[0]).stem, [*found.values()], settings=())
    return Results(study, Selection(runs, [], notes))


def report(study: str, runs_dir: Path, where: Mapping[str, str], baseline: str = "") -> Report:
    """Make the table of a study; arguments and errors as in `results` and `Results.compare`."""
    compared = results(study, runs_dir, where).compare(baseline)
    return Report(compared, make_rows(compared))
