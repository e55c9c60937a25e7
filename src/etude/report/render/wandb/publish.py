"""Writing the report of a study to W&B, or where that cannot be done now, keeping it beside the runs."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etude.errors import UserError
from etude.files import write_text
from etude.report import Report
from etude.report.render.wandb.connection import OutOfReachError, connect, project_of
from etude.runs.records import Run
from etude.runs.wandb_id import is_kept_back, logged_as

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import Report as WandbReport

_AXES = {"step": "valid_perplexity", "tokens": "by_tokens/valid_perplexity", "seconds": "by_seconds/valid_perplexity"}
_COSTS = {"flops": "FLOPs of training", "seconds": "seconds of training", "parameters": "parameters"}
_TITLE = 128  # characters, W&B takes no more
_WIDE = (24, 9)  # columns of a whole row, and its height


def publish(made: Report, runs_dir: Path, project: str, where: Mapping[str, str], baseline: str = "") -> list[str]:
    """Write the report to W&B; what was written there before of the same setting is brought up to date.

    What was sent, or could not be, is kept in `<runs_dir>/<study>/wandb-report.json`.

    Args:
        made: the table, and the runs behind it.
        runs_dir: where they lie.
        project: of W&B: [ENTITY/]PROJECT.
        where, baseline: what was asked for, for the line that sends the report later.

    Returns:
        What happened, in lines for the terminal: the report's URL, or where it is kept and how to send it.

    Raises:
        UserError: `wandb-workspaces` is not installed, or there is no such project to write to.
    """
    study = made.compared.study.name
    file = runs_dir / study / "wandb-report.json"
    entity, _, name = project.rpartition("/")
    report = _build_report(made, entity=entity, project=name)
    try:
        with connect() as api:
            report.entity, report.project = project_of(api, project)
            report.id = _find_earlier_report(file, report)
            report.save()
            url = str(report.url)
    except OutOfReachError as reason:
        report.id = _find_earlier_report(file, report)
        _keep(file, report)
        chosen = [f"{key}={value}" for key, value in where.items()]
        against = ["--baseline", baseline] if baseline else []
        again = ["etude", "report", study, *chosen, f"runs_dir={runs_dir}", *against, "--wandb", project]
        return [f"{reason}.", f"The report is kept in {file}; this sends it later: {shlex.join(again)}"]
    _keep(file, report)
    return [url, *_not_sent(_runs_shown(made), file.parent, report)]


def _keep(file: Path, report: "WandbReport") -> None:
    """Write the report as W&B takes it; the library has no public word for that."""
    write_text(file, report._to_model().model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n")


def _find_earlier_report(file: Path, report: "WandbReport") -> str:
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
    waiting = sum(is_kept_back(run.run_dir) for run in runs)
    if not waiting:
        return []
    where = shlex.join(["-e", report.entity, "-p", report.project, str(folder)])
    return [
        f"The plots lack {waiting} of {len(runs)} runs, which were logged offline; this sends them:",
        f"wandb sync {where}/*/*/wandb",
    ]


def _runs_shown(made: Report) -> list[Run]:
    """The runs that the table tells of, those that have only begun among them."""
    return [run for arm in made.compared.arms for run in (*arm.runs, *arm.diverged, *arm.unfinished)]


def _build_report(made: Report, *, entity: str, project: str) -> "WandbReport":
    """The report as `wandb-workspaces` holds it: the table as text, and plots that W&B draws of the same runs.

    A line, a bar and a point stand for an arm, for its runs are grouped by job type. The runs are named by their ids,
    so that the plots hold those of the table and no others. Nobody is asked for anything; `entity` may be empty while
    nothing is sent.

    Raises:
        UserError: `wandb-workspaces` is not installed.
    """
    try:
        from wandb_workspaces.expr import And, Metric
        from wandb_workspaces.reports import v2 as wr
    except ImportError as error:
        raise UserError("--wandb needs wandb-workspaces: pip install 'etude[wandb-report]'") from error
    compared, metrics = made.compared, made.compared.study.metrics.values()
    arms = len(compared.arms)
    curves = [
        wr.LinePlot(
            title=f"validation perplexity over {axis}",
            x=axis,
            y=[metric],
            log_y=True,
            groupby_aggfunc="mean",
            groupby_rangefunc="minmax",
            max_runs_to_show=arms,
        )
        for axis, metric in _AXES.items()
    ]
    shown = {
        metric.key.replace(".", "/"): metric.label  # under this name a run's summary at W&B holds it
        for metric in [metric for metric in metrics if not metric.is_log] or [compared.study.headline]
    }
    bars = [
        wr.BarPlot(
            title=f"test {label}", metrics=[key], max_bars_to_show=arms, layout=wr.Layout(w=_WIDE[0], h=_WIDE[1])
        )
        for key, label in shown.items()
    ]
    costs = [
        wr.ScatterPlot(title=f"{label} against {what}", x=wr.SummaryMetric(cost), y=wr.SummaryMetric(key), log_x=True)
        for key, label in shown.items()
        for cost, what in _COSTS.items()
    ]

    ids = sorted({logged_as(run.run_dir) for run in _runs_shown(made)})
    panels = {"Learning curves": curves, ", ".join(shown.values()): bars, "Cost against quality": costs}
    blocks = [wr.MarkdownBlock(made.markdown())]
    for heading, plots in panels.items():
        runset = wr.Runset(name=compared.study.name, filters=And(Metric("ID").isin(ids)), groupby=["JobType"])
        blocks += [wr.H2(heading), wr.PanelGrid(runsets=[runset], panels=plots)]
    return wr.Report(
        entity=entity,  # a run set that names no project is of the report's own
        project=project,
        title=compared.study.title[:_TITLE],
        description=", ".join(f"{key}={value}" for key, value in compared.setting.items()),
        width="fluid",
        blocks=blocks,
    )
