"""What a report on W&B shows: the table as text, and plots that W&B draws of the same runs.

A line, a bar and a point stand for an arm, for its runs are grouped by job type. The runs are named by their ids, so
that the plots hold those of the table and no others.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from etude.errors import UserError
from etude.report import Report
from etude.runs.records import Run
from etude.runs.wandb_id import logged_as
from etude.studies.metrics import Metric

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import PanelGrid, Runset
    from wandb_workspaces.reports.v2 import Report as WandbReport

_AXES = {"step": "valid_perplexity", "tokens": "by_tokens/valid_perplexity", "seconds": "by_seconds/valid_perplexity"}
_COSTS = {"flops": "FLOPs of training", "seconds": "seconds of training", "parameters": "parameters"}
_TITLE = 128  # characters, W&B takes no more
_WIDE = (24, 9)  # columns of a whole row, and its height


def runs_shown(made: Report) -> list[Run]:
    """The runs that the table tells of, those that have only begun among them."""
    return [run for arm in made.compared.arms for run in (*arm.runs, *arm.diverged, *arm.unfinished)]


def build_report(made: Report, *, entity: str, project: str) -> "WandbReport":
    """The report as `wandb-workspaces` holds it; nobody is asked for anything.

    Args:
        made: the table, and the runs behind it.
        entity: whose the project is; may be empty while nothing is sent.
        project: where the runs and the report are.

    Raises:
        UserError: `wandb-workspaces` is not installed.
    """
    try:
        from wandb_workspaces.reports import v2 as wr
    except ImportError as error:
        raise UserError("--wandb needs wandb-workspaces: pip install 'etude[wandb-report]'") from error
    compared = made.compared
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
    width, height = _WIDE
    shown = [one for one in compared.study.metrics.values() if not one.is_log] or [compared.study.headline]
    bars = [
        wr.BarPlot(
            title=f"test {metric.label}",
            metrics=[_logged(metric)],
            max_bars_to_show=arms,
            layout=wr.Layout(w=width, h=height),
        )
        for metric in shown
    ]
    costs = [
        wr.ScatterPlot(
            title=f"{metric.label} against {what}",
            x=wr.SummaryMetric(cost),
            y=wr.SummaryMetric(_logged(metric)),
            log_x=True,
        )
        for metric in shown
        for cost, what in _COSTS.items()
    ]
    return wr.Report(
        entity=entity,
        project=project,
        title=compared.study.title[:_TITLE],
        description=", ".join(f"{key}={value}" for key, value in compared.setting.items()),
        width="fluid",
        blocks=[
            wr.MarkdownBlock(made.markdown()),
            wr.H2("Learning curves"),
            _grid(made, curves),
            wr.H2(", ".join(metric.label for metric in shown)),
            _grid(made, bars),
            wr.H2("Cost against quality"),
            _grid(made, costs),
        ],
    )


def _logged(metric: Metric) -> str:
    """Under which name a run's summary at W&B holds it."""
    return metric.key.replace(".", "/")


def _grid(made: Report, panels: Sequence[object]) -> "PanelGrid":
    from wandb_workspaces.reports.v2 import PanelGrid

    return PanelGrid(runsets=[_runset(made)], panels=list(panels))


def _runset(made: Report) -> "Runset":
    """The runs of the table, by arm. A run set that names no project is of the report's own."""
    from wandb_workspaces.expr import And, Metric
    from wandb_workspaces.reports.v2 import Runset

    ids = sorted({logged_as(run.run_dir) for run in runs_shown(made)})
    return Runset(name=made.compared.study.name, filters=And(Metric("ID").isin(ids)), groupby=["JobType"])
