"""What a study found: `runs/` read, compared, and set beside what its paper printed. Needs no torch and no W&B.

    from etude.report import results

    found = results("table3", where={"scale": "pocket"})
    found.rows                           # one dict a run; found.frame() is a pandas.DataFrame of them
    found.arms["A1"][0].result["test"]   # what a run left
    found.compare("base").arms           # means, intervals, differences from base and their tests

`results` says in `notes` what it left out; it never mixes settings. Run directories may come from anywhere:
`runs_dir` is all that is read.
"""

from collections.abc import Mapping
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
from etude.report.selection import Selection, select
from etude.runs.records import Run
from etude.runs.table import read_runs
from etude.studies.study import Study, load_study

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Results:
    """The runs of a study that one table may hold; of a study that tunes its arms, those with the shared value."""

    study: Study
    selection: Selection

    @property
    def notes(self) -> list[str]:
        """Sentences on what was left out."""
        return self.selection.notes

    @property
    def runs(self) -> list[Run]:
        """The finished ones, in the order of the arms and their seeds."""
        order = list(self.study.arms)
        return sorted(self.selection.runs, key=lambda run: (order.index(run.arm), run.seed))

    @property
    def arms(self) -> dict[str, list[Run]]:
        """The same by arm; an arm that was not run has none."""
        return {arm: [run for run in self.runs if run.arm == arm] for arm in self.study.arms}

    @property
    def rows(self) -> frame.Frame:
        """One row a run, all with the same keys: `frame.py` says which."""
        return frame.frame(self.study, self.runs)

    def frame(self) -> "DataFrame":
        """The rows as pandas has them.

        Raises:
            UserError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise UserError("frame() needs pandas: pip install pandas, or take .rows, one dict a run") from error
        return DataFrame(self.rows)

    def compare(self, baseline: str = "") -> Compared:
        """Every arm held against one of them; the study's own baseline if nothing is said.

        Raises:
            UserError: there is no such arm.
        """
        if baseline and baseline not in self.study.arms:
            raise UserError(f"{self.study.name} has no arm {baseline!r}; {did_you_mean(baseline, self.study.arms)}")
        study = replace(self.study, baseline=baseline, against={}) if baseline else self.study
        return compare(study, self.selection)


@dataclass(frozen=True)
class Report:
    """A table: rich can print it, and it can be had as Markdown and LaTeX."""

    compared: Compared
    rows: Rows

    def __rich__(self) -> RenderedTable:
        return RenderedTable(self.rows)

    def markdown(self) -> str:
        """The table and its notes in Markdown."""
        return markdown(self.rows)

    def latex(self, notes: latex.Notes = "full", columns: int = 2) -> str:
        """Render the table and its notes for `\\input`; arguments as of `etude.report.render.latex`."""
        return latex.latex(self.rows, notes, columns)


def results(study: str, runs_dir: str | Path = "runs", where: Mapping[str, str] | None = None) -> Results:
    """The runs of a study, such as "table3"; `where` says which of several settings: {"scale": "pocket"}.

    Raises:
        UserError: there is no such study, or no finished run of it that is as `where` asks.
    """
    found = load_study(study)
    runs, unreadable = read_runs(found, Path(runs_dir))
    if not any(run.finished for run in runs):
        raise UserError(f"{runs_dir} holds no finished run of {study}; this makes them: etude sweep {study}")
    return Results(found, select(found, runs, where or {}, unreadable))


def report(study: str, runs_dir: Path, where: Mapping[str, str], baseline: str = "") -> Report:
    """The table of a study; arguments and errors as those of `results` and its `compare`."""
    compared = results(study, runs_dir, where).compare(baseline)
    return Report(compared, make_rows(compared))
