"""What a study found: `runs/` read, and set beside what its paper printed. Needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from etude.config.studies import load_study
from etude.errors import UserError
from etude.paths import found
from etude.report.results import read_runs, select
from etude.report.rows import Rows, make_rows
from etude.report.table import Drawn, markdown


@dataclass(frozen=True)
class Report:
    """A report: rich can print it, and it can be had as Markdown."""

    rows: Rows

    def __rich__(self) -> Drawn:
        return Drawn(self.rows)

    def markdown(self) -> str:
        """The table and its notes in Markdown."""
        return markdown(self.rows)


def report(study: str, runs_dir: Path, where: Mapping[str, str]) -> Report:
    """The table of a study.

    Args:
        study: its name, such as "table3".
        runs_dir: where the runs lie.
        where: which runs, where there are several settings: {"scale": "pocket", "data": "grammar"}.

    Raises:
        UserError: there is no such study, or no finished run of it that is as `where` asks.
    """
    told = load_study(study)
    runs, unreadable = read_runs(told, runs_dir)
    if not any(run.finished for run in runs):
        raise UserError(f"{runs_dir} holds no finished run of {study}; this makes them: {_maker(study)}")
    rows = make_rows(told, select(told, runs, where))
    rows.notes += unreadable
    return Report(rows)


def _maker(study: str) -> str:
    if any((folder / f"{study}.yaml").is_file() for folder in found("sweeps")):
        return f"etude sweep sweeps/{study}.yaml"
    return f"etude train -m 'experiment=glob({study}/*)'"
