"""Writing the report of a study to W&B, or where that cannot be done now, keeping it beside the runs."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etude.files import write_text
from etude.report import Report
from etude.report.arguments import BASELINE, WANDB
from etude.report.render.wandb.connection import OutOfReachError, connect, project_of
from etude.report.render.wandb.panels import build_report, runs_shown
from etude.runs.records import Run

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import Report as WandbReport


def publish(made: Report, runs_dir: Path, project: str, where: Mapping[str, str], baseline: str = "") -> list[str]:
    """Write the report to W&B; what was written there before of the same setting is brought up to date.

    What was sent, or could not be, is kept in `<runs_dir>/<study>/wandb-report.json`.

    Args:
        made: the table, and the runs behind it.
        runs_dir: where they lie.
        project: of W&B: [ENTITY/]PROJECT.
        where: which runs were asked for; it is part of the line that sends the report later.
        baseline: the arm that was asked for; so is that.

    Returns:
        What happened, in lines for the terminal: the report's URL, or where it is kept and how to send it.

    Raises:
        UserError: `wandb-workspaces` is not installed, or there is no such project to write to.
    """
    study = made.compared.study.name
    file = runs_dir / study / "wandb-report.json"
    entity, _, name = project.rpartition("/")
    report = build_report(made, entity=entity, project=name)
    try:
        with connect() as api:
            report.entity, report.project = project_of(api, project)
            report.id = _sent_before(file, report)
            report.save()
            url = str(report.url)
    except OutOfReachError as reason:
        report.id = _sent_before(file, report)
        _keep(file, report)
        chosen = [f"{key}={value}" for key, value in where.items()]
        against = [BASELINE, baseline] if baseline else []
        again = ["etude", "report", study, *chosen, f"runs_dir={runs_dir}", *against, WANDB, project]
        return [f"{reason}.", f"The report is kept in {file}; this sends it later: {shlex.join(again)}"]
    _keep(file, report)
    return [url, *_not_sent(runs_shown(made), file.parent, report)]


def _keep(file: Path, report: "WandbReport") -> None:
    """As W&B takes it; the library has no public word for it."""
    write_text(file, report._to_model().model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n")


def _sent_before(file: Path, report: "WandbReport") -> str:
    """The id of the report in `file` where it is of the same project and setting; nothing where it is not."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        entity, project = kept["project"]["entityName"], kept["project"]["name"]
        same = (project, kept["description"]) == (report.project, report.description)
        return str(kept["id"]) if same and (not entity or not report.entity or entity == report.entity) else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _not_sent(runs: Sequence[Run], folder: Path, report: "WandbReport") -> list[str]:
    """How many runs lie on this machine alone, where there are any, and what sends them."""
    waiting = sum(_waits(run.run_dir.path / "wandb") for run in runs)
    if not waiting:
        return []
    where = shlex.join(["-e", report.entity, "-p", report.project, str(folder)])
    return [
        f"The plots lack {waiting} of {len(runs)} runs, which were logged offline; this sends them:",
        f"wandb sync {where}/*/*/wandb",
    ]


def _waits(folder: Path) -> bool:
    """Whether a run has been logged offline, and not all of it has been sent since."""
    return any(not [*part.glob("*.synced")] for part in folder.glob("offline-run-*"))
