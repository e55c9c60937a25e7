"""Write the report of a study to W&B; if W&B cannot be reached, keep it in a file."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etude.errors import UserError
from etude.files import write_text
from etude.report import Report
from etude.report.render.wandb.connection import OutOfReachError, connect, project_of
from etude.store.records import Run
from etude.store.wandb_id import is_kept_back, logged_as

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import Report as WandbReport

_AXES = {"step": "valid_perplexity", "tokens": "by_tokens/valid_perplexity", "seconds": "by_seconds/valid_perplexity"}
_COSTS = {"flops": "FLOPs of training", "seconds": "seconds of training", "parameters": "parameters"}
_TITLE = 128  # W&B's limit of characters
_WIDE = (24, 9)  # width and height of a panel that fills a row


def publish(made: Report, runs_dir: Path, project: str, where: Mapping[str, str], baseline: str = "") -> list[str]:
    """Write the report to W&B; an earlier report on the same setting is updated.

    The report is also kept in `<runs_dir>/<study>/wandb-report.json`, whether or not it could be sent; that of a
    further setting or project in `wandb-report-2.json`, and so on.

    Args:
        made: the table, and the runs behind it.
        runs_dir: the folder with the runs.
        project: the W&B project, [ENTITY/]PROJECT.
        where, baseline: the arguments of the report, for the command that sends it later.

    Returns:
        Lines for the terminal: the report's URL, or where it is kept and how to send it.

    Raises:
        UserError: `wandb-workspaces` is not installed, or `project` is not valid.
    """
    study = made.compared.study.name
    folder = runs_dir / study
    entity, _, name = project.rpartition("/")
    report = _build_report(made, entity=entity, project=name)
    try:
        with connect() as api:
            report.entity, report.project = project_of(api, project)
            file, report.id = _find_earlier_report(folder, report)
            report.save()
            url = str(report.url)
    except OutOfReachError as reason:
        file, report.id = _find_earlier_report(folder, report)
        _keep(file, report)
        chosen = [f"{key}={value}" for key, value in where.items()]
        against = ["--baseline", baseline] if baseline else []
        again = ["etude", "report", study, *chosen, f"runs_dir={runs_dir}", *against, "--wandb", project]
        return [f"{reason}.", f"The report is kept in {file}; this sends it later: {shlex.join(again)}"]
    _keep(file, report)
    return [url, *_not_sent(_runs_shown(made), folder, report)]


def _keep(file: Path, report: "WandbReport") -> None:
    """Write the report in W&B's own format, for which the library has no public method."""
    write_text(file, report._to_model().model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n")


def _find_earlier_report(folder: Path, report: "WandbReport") -> tuple[Path, str]:
    """Return the file of the report with the same project and setting, and its id; of a first one a new file and ""."""
    n = 1
    while True:
        file = folder / f"wandb-report{f'-{n}' * (n > 1)}.json"
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            entity, project = kept["project"]["entityName"], kept["project"]["name"]
            same = (project, kept["description"]) == (report.project, report.description)
            if same and (not entity or not report.entity or entity == report.entity):
                return file, str(kept["id"])
            n += 1
        except (OSError, ValueError, KeyError, TypeError):
            return file, ""


def _not_sent(runs: Sequence[Run], folder: Path, report: "WandbReport") -> list[str]:
    """Say how many runs were logged offline, if any, and how to send them."""
    waiting = sum(is_kept_back(run.run_dir) for run in runs)
    if not waiting:
        return []
    where = shlex.join(["-e", report.entity, "-p", report.project, str(folder)])
    return [
        f"The plots lack {waiting} of {len(runs)} runs, which were logged offline; this sends them:",
        f"wandb sync {where}/*/*/wandb",
    ]


def _runs_shown(made: Report) -> list[Run]:
    """Return all runs of the table, including unfinished ones."""
    return [run for arm in made.compared.arms for run in (*arm.runs, *arm.diverged, *arm.unfinished)]


def _build_report(made: Report, *, entity: str, project: str) -> "WandbReport":
    """Build the report for `wandb-workspaces`: the table as text, and plots that W&B draws from the same runs.

    A line, bar or point shows an arm, because the runs are grouped by job type. The runs are selected by their ids, so
    that the plots show only the runs of the table. This makes no requests; `entity` may be empty until the report is
    sent.

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
        metric.key.replace(".", "/"): metric.label  # the name in the run's summary at W&B
        for metric in [one for one in metrics if not one.is_log and len(one.parts) == 1] or [compared.study.headline]
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
        entity=entity,  # a run set without a project uses the report's
        project=project,
        title=compared.study.title[:_TITLE],
        description=", ".join(f"{key}={value}" for key, value in compared.setting.items()),
        width="fluid",
        blocks=blocks,
    )
