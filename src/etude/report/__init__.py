"""Read the runs of a study, compare its arms, and report them beside the paper's numbers.

Needs neither torch nor W&B.

    from etude.report import results

    found = results("table3", where={"scale": "pocket"})
    found.frame()                        # a pandas.DataFrame, a row a run (the columns stand in frame.py)
    found.arms["A1"][0].result["test"]   # the test scores of a run
    found.compare("base").arms           # means, intervals, differences from base and their tests

`results` never mixes settings, and lists in `notes` what it left out. It reads `runs_dir` alone, where run directories
may be copied to from any machine. `results_of_csv` reads the runs of another trainer in the same way.
"""

import glob
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from etude.errors import UserError, did_you_mean
from etude.files import typed_path
from etude.report import figures, frame
from etude.report.arms_frame import arms_frame
from etude.report.compare import compare
from etude.report.comparison import Compared
from etude.report.grouping import SETTINGS, by_setting, make_study, with_settings
from etude.report.render import latex
from etude.report.render.rows import Rows, make_rows
from etude.report.render.terminal import RenderedTable, markdown
from etude.report.search import read_finished
from etude.report.selection import Selection, select
from etude.report.sequential import not_decided
from etude.report.together import join_studies
from etude.report.wording import format_count
from etude.store.records import Run, leaving_out, read_rows, read_run
from etude.store.run_dir import RunDir
from etude.study.metrics import Metric, default_metrics
from etude.study.study import Paper, Study, load_study, study_names

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure


@dataclass(frozen=True, repr=False)
class Results:
    """The runs of a study that belong in one table. If the study tunes its arms: the runs with the shared value."""

    study: Study
    selection: Selection

    def __repr__(self) -> str:
        arms = len({run.arm for run in self.selection.runs})
        return (
            f"<Results of {self.study.name}: {len(self.selection.runs)} runs of {arms} of {len(self.study.arms)} arms; "
            ".frame() has a row a run, .compare() the table, .notes what was left out>"
        )

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

    def frame(self) -> "DataFrame":
        """Return a pandas DataFrame with a row per run; its columns stand in `frame.py`."""
        return frame.frame(self.study, self.runs)

    def compare(self, baseline: str = "") -> Compared:
        """Compare every arm with `baseline`; by default with the arm that the study compares it with.

        Raises:
            UserError: there is no such arm.
        """
        if baseline and baseline not in self.study.arms:
            raise UserError(f"{self.study.name} has no arm {baseline!r}; {did_you_mean(baseline, self.study.arms)}")
        study = replace(self.study, baseline=baseline, against={}) if baseline else self.study
        return compare(study, self.selection)


@dataclass(frozen=True, repr=False)
class Report:
    """The comparison of a study's arms as a table that shows itself, in a terminal, in a notebook or with rich.

    Attributes:
        compared: all numbers: means, intervals, differences, tests.
        rows: the table as it is shown.
    """

    compared: Compared
    rows: Rows

    def __repr__(self) -> str:
        """The table and notes as the terminal shows them, cut if they are too long; it says how to see the rest."""
        from etude.report.render.notebook import as_text

        return as_text(self.rows, ".frame() has all numbers, .markdown() all text")

    def _repr_html_(self) -> str:
        """The table of the page, with its notes folded below it."""
        from etude.report.render.notebook import as_html

        return as_html(self.rows)

    def __rich__(self) -> RenderedTable:
        return RenderedTable(self.rows)

    def frame(self) -> "DataFrame":
        """Return a pandas DataFrame with a row per arm; its columns stand in `etude.report.arms_frame`."""
        return arms_frame(self.compared)

    def figure(self, name: str = "forest", metric: str = "", over: str = "") -> "Figure":
        """Draw a figure of the page with plotly.

        Args:
            name: "forest", each arm's difference with its interval; "cost", the metric over what an arm costs; or
                "paper", our differences over those of the paper.
            metric: the metric, such as "ppl"; by default the one that decides.
            over: of "cost", which: "parameters", "flops", "tokens" or "seconds"; by default the first that is known.

        Raises:
            UserError: there is no such figure, metric or cost, or no number to draw.
        """
        metric = metric or self.compared.study.headline.name
        costs = figures.costs(self.compared)
        draw: dict[str, Callable[[], figures.Figure | None]] = {
            "forest": lambda: figures.forest(self.compared, metric),
            "cost": lambda: figures.cost(self.compared, metric, over or next(iter(costs), "")),
            "paper": lambda: figures.agreement(self.compared),
        }
        for word, known in ((name, draw), (metric, self.compared.study.metrics), (over, ["", *costs])):
            if word not in known:
                raise UserError(f"{self.rows.name} has no {word!r} to draw; {did_you_mean(word, filter(None, known))}")
        drawn = draw[name]() if costs or name != "cost" else None
        if drawn is None:
            raise UserError(f"{self.rows.name} has no numbers for the figure {name!r} yet")
        return drawn.plotly()

    def markdown(self) -> str:
        """Render the table and its notes in Markdown."""
        return markdown(self.rows)

    def latex(self, notes: latex.Notes = "full", columns: int = 2) -> str:
        """Render the table and its notes for `\\input`; arguments as in `etude.report.render.latex.latex`."""
        return latex.latex(self.rows, notes, columns)


def undecided(study: Study, run_dirs: Sequence[RunDir]) -> list[str]:
    """Return the arms of a study, of those that have runs, that are not decided by some runs (`sequential.py`)."""
    compared = compare(study, select(study, [read_run(run) for run in run_dirs], {}))
    begun = {arm.arm for arm in compared.arms if arm.runs or arm.diverged}
    return [arm for arm in not_decided(compared) if arm in begun]


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
    known = load_study(study) if study in study_names() else None
    rows, notes = read_rows(Path(runs_dir) / study, known.arms if known else None)
    if not rows and known is None:
        load_study(study)  # says that there is none
    reasons = {id(run): _why_left_out(run) for run in rows}
    fitting = [run for run in rows if not reasons[id(run)]]
    notes += [f"Left out: {why}." for why in reasons.values() if why]
    if not any(run.finished for run in fitting):
        if not Path(runs_dir).is_dir():
            raise UserError(f"there is no folder {runs_dir}: name that of the runs with runs_dir=DIR, or train some")
        there = "" if str(runs_dir) == "runs" else f" runs_dir={runs_dir}"
        way_out = f"this makes them: etude sweep {study}" if known else f"etude status {study}"
        raise UserError(f"{runs_dir} holds no finished run of {study}; {way_out}{there}")
    if known:
        return Results(known, select(known, fitting, where or {}, notes))
    return _without_study(study, fitting, where, notes)


def results_of_runs(patterns: Sequence[str], where: Mapping[str, str] | None = None) -> Results:
    """Read and select runs of any studies, whose arms are what differs in their configs.

    Args:
        patterns: directories of runs, or of folders that hold some, such as "runs/table3/A*".
        where: which setting to select if there are several.

    Raises:
        UserError: there is no finished run among them, or none matches `where`.
    """
    notes: list[str] = []
    runs: list[Run] = []
    for path in _run_folders(patterns):
        with leaving_out(path, notes):
            runs.append(read_run(RunDir(path)))
    fitting = [run for run in runs if not _why_left_out(run)]
    if not any(run.finished for run in fitting):
        found = f"none of the {format_count(len(runs))} is finished" if runs else "no run lies there"
        raise UserError(f"{' '.join(patterns)}: {found}; name directories such as 'runs/table3/A*'")
    return _without_study("runs", fitting, where, notes)


def _run_folders(patterns: Iterable[str]) -> list[Path]:
    """Return the directories of runs that some patterns match, each once, or those below what they match."""
    expanded = [str(typed_path(pattern)) for pattern in patterns]
    matched = [Path(path) for pattern in expanded for path in sorted(glob.glob(pattern))]  # noqa: PTH207, may be absolute
    inside = ("", "seed*/", "*/seed*/", "*/*/seed*/")
    found = [run for path in matched for depth in inside for run in sorted(path.glob(depth) if depth else [path])]
    return [*dict.fromkeys(path for path in found if RunDir(path).config_file.is_file())]


def together(found: Sequence[Results]) -> list[Results]:
    """Join the studies of one setting in one table, where an arm that two of them have stands once."""
    return [Results(*part) for part in join_studies(found)]


def _without_study(name: str, runs: Sequence[Run], where: Mapping[str, str] | None, notes: Sequence[str]) -> Results:
    """Select runs that belong to no study, whose arms are what was typed."""
    made, fitting = make_study(name, runs)
    selection = select(made, fitting, where or {}, notes)
    shown = {run.arm for run in selection.runs}
    arms = {arm: words for arm, words in made.arms.items() if arm in shown}  # others are of another setting
    return Results(replace(made, arms=arms, baseline=next(iter(arms))), selection)


def _why_left_out(run: Run) -> str:
    """Say why a run fits in no table; empty if it does."""
    needed = ("parameters", "steps", *["test.sentences"] * (not run.divergence)) if run.finished else ()
    lacks = [key for key in needed if run.score(key) is None]
    if run.config.get("arm", run.arm) != run.arm:
        return f"{run.run_dir.path}, which is a run of the arm {run.config['arm']}"
    return f"{run.run_dir.path}, which cannot be read (its result has no {lacks[0]})" if lacks else ""


def results_of_csv(
    file: str | Path,
    study: str = "",
    where: Mapping[str, str] | None = None,
    baseline: str = "",
    metrics: Sequence[Metric] = (),
) -> Results:
    """Read and select the runs in a CSV: one that `etude results --csv` wrote, or any with arm, seed and a metric.

    Args:
        file: the CSV; its columns are those of `frame.py`.
        study: the name of the study; by default that in its column `study`. There need be no such study; with neither,
            the name of the file is that of the table.
        where: which setting to select if there are several.
        baseline: the arm that the others are compared with if there is no such study; by default the first.
        metrics: the metrics; by default those of the study, or if there is none, the built-in ones.

    Raises:
        UserError: the file cannot be read, its rows are not valid, or no run in it matches `where`.
    """
    file, notes = Path(file), []
    # A file that happens to be called as a study is, such as gpt.csv, is not of it.
    told = study or frame.study_in(file)
    name, known = told or file.stem, load_study(told) if told in study_names() else None
    metrics = frame.as_columns(file, metrics)
    if metrics and known:
        known = replace(known, metrics={metric.name: metric for metric in metrics})
    by_name = {metric.name: metric for metric in metrics} or (known.metrics if known else default_metrics(None))
    runs = frame.read_csv(file, name, by_name)
    arms = dict.fromkeys(run.arm for run in runs)
    if known is None:
        baseline = baseline or next(iter(arms))
        if baseline not in arms:
            raise UserError(f"{file}: it has no arm {baseline!r}; {did_you_mean(baseline, arms)}")
        measured = {n: m for n, m in by_name.items() if any(run.score(m.key) is not None for run in runs)}
        changes = {arm: _choices_of([run for run in runs if run.arm == arm]) for arm in arms}
        known = Study(name, name, baseline, changes, {}, Paper(), metrics=measured or by_name)
    else:
        notes = [f"Left out: the arm {arm}, which the study does not have." for arm in arms if arm not in known.arms]
        runs = [run for run in runs if run.arm in known.arms]
        if not runs:
            raise UserError(f"{file} holds no arm of {name}; {did_you_mean(next(iter(arms)), known.arms)}")
    frame.refuse_twice(file, by_setting(with_settings(known, runs)))
    return Results(known, select(known, runs, where or {}, notes))


def _choices_of(runs: Sequence[Run]) -> list[str]:
    """Return the choices that all runs of an arm have, but for those that make tables of their own."""
    shared = set.intersection(*({*run.choices.items()} for run in runs))
    return [f"{group}={choice}" for group, choice in sorted(shared) if group not in SETTINGS]


def results_of_sweep(name: str, planned: Iterable[RunDir], study: Study | None = None) -> Results:
    """Read the runs of a sweep file, or of a study on all rungs of its ladder: all of them in one table.

    Args:
        name: the arguments that started it, such as "sweeps/learning_rate.yaml run_cap=40".
        planned: the directory of each run.
        study: whose arms they are; None: what differs between them makes the arms.

    Raises:
        UserError: none is finished.
    """
    wanted = dict.fromkeys(planned)
    found, notes = read_finished(wanted)
    if not found:
        raise UserError(" ".join([f"no run of this sweep is finished; this makes them: etude sweep {name}", *notes]))
    if missing := sum(not run.finished for run in wanted):
        notes.append(f"Not finished: {format_count(missing)} of the sweep.")
    runs = [*found.values()]
    if study is None:
        study, runs = make_study(Path(shlex.split(name)[0]).stem, runs, settings=())
    return Results(study, Selection(runs, [], notes))


def report(study: str, runs_dir: Path, where: Mapping[str, str], baseline: str = "") -> Report:
    """Make the table of a study; arguments and errors as in `results` and `Results.compare`."""
    return make_report(results(study, runs_dir, where), baseline)


def make_report(found: Results, baseline: str = "") -> Report:
    """Make the table of selected runs; arguments and errors as in `Results.compare`."""
    compared = found.compare(baseline)
    return Report(compared, make_rows(compared))
