"""Show the progress of a sweep: a live table on a terminal, else plain log lines."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from etude.launch.job import Job
from etude.store.run_dir import RunDir
from etude.store.run_state import DONE, STYLES, State
from etude.study.study import number_at, value_at
from etude.terminal import console as make_console
from etude.terminal import fit_table, format_duration, format_number, shorten_override

logger = logging.getLogger(__name__)

Searched = Mapping[RunDir, Mapping[str, str]]  # what a search knows of its runs: run -> column -> cell

_FIGURES = ("step", "loss", "tokens/s", "left")
_OF_SEARCHES = ("step", "rung", "best", "left", "tokens/s")  # in place of scores and loss
_OMISSIBLE = ("params", "tokens/s", "loss")  # columns that a narrow terminal goes without, the first before the others
_SHORTEST_NAME = 32  # columns to which the name of a run is cut, if there is no room
_SHORTEST_TRIAL = 24  # the same of a trial, which its number tells from the others
_EXTRA_LINES = 3  # lines of the table besides its rows


class Dashboard:
    """Shows the progress of a sweep.

    On a terminal, this is a table with a row per run, and above it a message for each run that fails or diverges. If
    the terminal is closed, the sweep goes on. Elsewhere, it is a log line when a run starts and another when it ends.

    Args:
        jobs: the runs of the sweep.
        live: the display for the table; None for log lines.
        searched: gives what a search knows of the runs.
    """

    def __init__(self, jobs: Sequence[Job], live: Live | None = None, searched: Callable[[], Searched] = dict) -> None:
        self._jobs, self._live, self._searched = jobs, live, searched
        for job in jobs:
            _ = job.metrics  # kept from now on: an edit of study.yaml, half done, must not end the sweep
        self._tell(logging.INFO, f"runs: {len(jobs)}, finished before: {self._done()}")

    def started(self, job: Job) -> None:
        """Report that `job` has started."""
        again = f" again, retry {_retry(job, job.attempts - 1)}" if job.attempts > 1 else ""
        on = f" on GPU {_gpus(job)}" if job.gpus else ""
        self._tell(logging.INFO, f"{job.name}: started{again}{on}")

    def ended(self, job: Job) -> None:
        """Report that `job` is finished or has failed; a failure with the last lines of its log."""
        done = f" ({self._done()} of {len(self._jobs)})"
        if job.state is State.FAILED:
            again = f"\nit is tried again, behind those that wait: retry {_retry(job, job.attempts)}"
            self._tell(logging.ERROR, job.failure() + (again if job.retriable else ""), "red")
        elif job.state in (State.PAUSED, State.PRUNED):
            self._tell(logging.INFO, f"{job.name}: {job.state} at step {job.progress().step}{done}")
        elif job.state is State.DIVERGED:
            self._tell(logging.WARNING, f"{job.name} diverged: {job.divergence}{done}", "magenta")
        else:
            scores = ", ".join(f"{label} {score}" for label, score in _scores(job).items() if score)
            took = format_duration(job.ended - job.started)
            self._tell(logging.INFO, f"{job.name}: finished in {took}, {scores}{done}")

    def elsewhere(self, job: Job) -> None:
        """Report that another process works on `job` or on its training, or has finished it."""
        if job.state in DONE:
            message = "finished by another process"
        elif job.waits_for_training:
            message = "waits for another run, which trains the same weights"
        else:
            message = "left to another process"
        self._tell(logging.INFO, f"{job.name}: {message}")

    def stopping(self, runs: int, grace: float) -> None:
        """Report that the sweep is stopping, and that `runs` runs have `grace` seconds to write a checkpoint."""
        which = "1 run has" if runs == 1 else f"{runs} runs have"
        way_out = "Ctrl-C again ends everything now"
        self._tell(logging.WARNING, f"stopping: {which} {grace:g} s to write a checkpoint; {way_out}")

    def refresh(self, whole: bool = False) -> None:
        """Redraw the table: all rows if `whole`, else those that fit on the screen."""
        if self._live is not None:
            room = len(self._jobs) if whole else self._live.console.height - _EXTRA_LINES
            with suppress(OSError):
                render = partial(sweep_table, self._jobs, room, searched=self._searched())
                table, _ = fit_table(self._live.console, render, _OMISSIBLE)
                self._live.update(table, refresh=True)

    def _tell(self, level: int, text: str, style: str = "") -> None:
        """Log a message; with a table, print it above the table if it is a warning or error."""
        if self._live is None:
            logger.log(level, "%s", text)
        elif level > logging.INFO:
            with suppress(OSError):
                self._live.console.print(Text(text, style=style))

    def _done(self) -> int:
        return sum(job.state in DONE for job in self._jobs)


@contextmanager
def dashboard(
    jobs: Sequence[Job],
    console: Console | None = None,
    *,
    live: bool = True,
    searched: Callable[[], Searched] = dict,
) -> Iterator[Dashboard]:
    """Open a dashboard: if `live` and `console` (by default standard output) is a terminal, a table, else log lines."""
    console = console or make_console()
    if not (live and console.is_terminal and not console.is_dumb_terminal):
        yield Dashboard(jobs)
        return
    display = Live(console=console, auto_refresh=False)
    shown = Dashboard(jobs, display, searched)
    display.start()
    try:
        yield shown
    finally:
        shown.refresh(whole=True)
        with suppress(OSError):
            display.stop()


def sweep_table(jobs: Sequence[Job], room: int, omitted: Sequence[str] = (), searched: Searched | None = None) -> Table:
    """Make the table of all jobs; if there is `room` for fewer rows, of those in the most important states.

    The columns `omitted` are left out. What a search knows of its runs takes the place of their loss and scores.
    """
    known = searched or {}
    table = Table(box=None, header_style="bold", caption_justify="left", pad_edge=False, padding=(0, 2, 0, 0))
    names = _names(jobs)
    shortest = _SHORTEST_TRIAL if known else _SHORTEST_NAME
    table.add_column("run", min_width=min(shortest, max(map(len, names.values()), default=0)))
    table.add_column("state", no_wrap=True)
    labels = dict.fromkeys(metric.label for job in jobs for metric in job.metrics)
    headers = [*_OF_SEARCHES] if known else [*_FIGURES, *labels]
    headers = [*(["GPU"] if any(job.gpus for job in jobs) else []), *headers, "params"]
    if known and not any("rung" in shown for shown in known.values()):
        headers.remove("rung")
    headers = [header for header in headers if header not in omitted]
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    states = [*STYLES]
    by_importance = sorted(jobs, key=lambda job: (states.index(job.state), -job.ended))
    shown = set(by_importance[: max(room, 1)])
    for job in jobs:
        if job in shown:
            figures = {**_figures(job), **known.get(job.run_dir, {})}
            name = Text(names[job], no_wrap=True, overflow="ellipsis")
            table.add_row(name, _state(job), *(figures.get(header, "") for header in headers))
    counts = {state: sum(job.state is state for job in jobs) for state in states}
    table.caption = Text(", ".join(f"{count} {state}" for state, count in counts.items() if count), "dim")
    return table


def _names(jobs: Sequence[Job]) -> dict[Job, str]:
    """Return the names of the jobs in the table, without study, arm and seed if all have the same, as in a search."""
    words = {job: " ".join(map(shorten_override, job.name_suffix.split())) for job in jobs}
    alike = all(words.values()) and len({job.stem for job in jobs}) == 1
    return words if alike else {job: f"{job.stem} {words[job]}".rstrip() for job in jobs}


def _state(job: Job) -> Text:
    """Return the cell of a job's state; for a running job, what it is doing, with the number of the retry."""
    if job.state is State.WAITING and job.attempts > 0:
        return Text(f"waiting, retry {_retry(job, job.attempts)}", "yellow")
    if job.state is not State.RUNNING:
        return Text(job.state, STYLES[job.state])
    word = "stopping" if job.stopping else job.progress().doing
    retry = f", retry {_retry(job, job.attempts - 1)}" if job.attempts > 1 else ""
    return Text(f"{word}{retry}", "yellow" if job.stopping else STYLES[job.state])


def _figures(job: Job) -> dict[str, str]:
    """Return the cells of a job by column: results if it is done, progress if it runs, else none."""
    if job.state in DONE:
        steps, parameters = (format_number(job.result.get(key), 0) for key in ("steps", "parameters"))
        return {"step": steps, "params": parameters} | ({} if job.state is State.DIVERGED else _scores(job))
    if job.state not in (State.RUNNING, State.PAUSED, State.PRUNED):
        return {}
    now = job.progress()
    max_steps = now.max_steps or value_at(job.config, "budget.max_steps") or 0
    return {
        "GPU": _gpus(job),
        "step": f"{now.step or 0:,}/{max_steps:,}",
        "loss": format_number(now.loss, 3),
        "tokens/s": format_number(now.tokens_per_second, 0),
        "left": format_duration(now.seconds_left),
    }


def _scores(job: Job) -> dict[str, str]:
    """Return the scores of a finished run by the labels of its study's metrics; "" for a score it does not have."""
    return {metric.label: format_number(number_at(job.result, metric.key), metric.digits) for metric in job.metrics}


def _gpus(job: Job) -> str:
    """Return the ids of a job's GPUs, long ones abbreviated, which nvidia-smi accepts too."""
    return ",".join(gpu[:12] for gpu in job.gpus)


def _retry(job: Job, number: int) -> str:
    return f"{number}/{job.retries}"
