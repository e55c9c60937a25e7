"""How a sweep stands: a table that fills in as runs finish, or plain lines where nobody watches."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from etude.launchers.job import Job
from etude.runs.lock import is_locked, is_training_locked
from etude.runs.run_state import DONE, State
from etude.studies.study import value_at
from etude.terminal import console as make_console
from etude.terminal import format_duration, format_number

logger = logging.getLogger(__name__)

_STYLES = {
    State.RUNNING: "cyan",
    State.FAILED: "bold red",
    State.DIVERGED: "bold magenta",
    State.STOPPED: "yellow",
    State.FINISHED: "green",
    State.ELSEWHERE: "dim",
    State.WAITING: "dim",
    State.SKIPPED: "dim",
}
"""The most important state first."""
_FIGURES = ("step", "loss", "tokens/s", "left")
_AROUND = 3  # lines that the table needs beside its rows


class Dashboard:
    """What a sweep tells whoever watches it.

    On a terminal that is a table with a row a run, and above it, as it happens, what failed or diverged; a terminal
    that has gone ends no sweep. Elsewhere it is a line when a run starts and one when it ends.

    Args:
        jobs: the runs of the sweep.
        live: where the table is drawn; None for lines.
    """

    def __init__(self, jobs: Sequence[Job], live: Live | None = None) -> None:
        self._jobs, self._live = jobs, live
        self._tell(logging.INFO, f"runs: {len(jobs)}, finished before: {self._done()}")

    def started(self, job: Job) -> None:
        """`job` has begun."""
        again = f" again, retry {_retry(job, job.attempts - 1)}" if job.attempts > 1 else ""
        on = f" on GPU {_gpus(job)}" if job.gpus else ""
        self._tell(logging.INFO, f"{job.name}: started{again}{on}")

    def ended(self, job: Job) -> None:
        """`job` is finished or has failed; for a failure the last lines of the log are told too."""
        done = f" ({self._done()} of {len(self._jobs)})"
        if job.state is State.FAILED:
            again = f"\nit is tried again, behind those that wait: retry {_retry(job, job.attempts)}"
            self._tell(logging.ERROR, job.failure() + (again if job.retriable else ""), "red")
        elif job.state is State.DIVERGED:
            self._tell(logging.WARNING, f"{job.name} diverged: {job.divergence}{done}", "magenta")
        else:
            scores = ", ".join(f"{label} {score}" for label, score in _scores(job).items() if score)
            took = format_duration(job.ended - job.started)
            self._tell(logging.INFO, f"{job.name}: finished in {took}, {scores}{done}")

    def elsewhere(self, job: Job) -> None:
        """`job` is left to another process that works on it or on its training, or was finished by one."""
        if job.state in DONE:
            message = "finished by another process"
        elif is_training_locked(job.run_dir) and not is_locked(job.run_dir):
            message = "waits for the run that trains the same"
        else:
            message = "left to another process"
        self._tell(logging.INFO, f"{job.name}: {message}")

    def stopping(self, runs: int, grace: float) -> None:
        """The sweep is to stop, and so many runs have `grace` seconds to put themselves away."""
        which = "1 run has" if runs == 1 else f"{runs} runs have"
        way_out = "Ctrl-C again ends everything now"
        self._tell(logging.WARNING, f"stopping: {which} {grace:g} s to write a checkpoint; {way_out}")

    def refresh(self, whole: bool = False) -> None:
        """Draw the table anew: all of it if `whole`, else what fits on the screen."""
        if self._live is not None:
            room = len(self._jobs) if whole else self._live.console.height - _AROUND
            with suppress(OSError):
                self._live.update(sweep_table(self._jobs, room), refresh=True)

    def _tell(self, level: int, text: str, style: str = "") -> None:
        """Log it, or say it above the table, unless the table shows it anyway."""
        if self._live is None:
            logger.log(level, "%s", text)
        elif level > logging.INFO:
            with suppress(OSError):
                self._live.console.print(Text(text, style=style))

    def _done(self) -> int:
        return sum(job.state in DONE for job in self._jobs)


@contextmanager
def dashboard(jobs: Sequence[Job], console: Console | None = None) -> Iterator[Dashboard]:
    """A live table where `console` (standard output unless told) is a terminal, else one line for each event."""
    console = console or make_console()
    if not console.is_terminal:
        yield Dashboard(jobs)
        return
    live = Live(console=console, auto_refresh=False)
    shown = Dashboard(jobs, live)
    live.start()
    try:
        yield shown
    finally:
        shown.refresh(whole=True)
        with suppress(OSError):
            live.stop()


def sweep_table(jobs: Sequence[Job], room: int) -> Table:
    """The state of every job; where there is `room` for fewer rows, of those that matter most now."""
    table = Table(box=None, header_style="bold", caption_justify="left", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)
    table.add_column("state", no_wrap=True)
    labels = dict.fromkeys(metric.label for job in jobs for metric in job.metrics)
    headers = [*(["GPU"] if any(job.gpus for job in jobs) else []), *_FIGURES, *labels, "params"]
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    states = [*_STYLES]
    by_importance = sorted(jobs, key=lambda job: (states.index(job.state), -job.ended))
    shown = set(by_importance[: max(room, 1)])
    for job in jobs:
        if job in shown:
            figures = _figures(job)
            table.add_row(job.name, _state(job), *(figures.get(header, "") for header in headers))
    counts = {state: sum(job.state is state for job in jobs) for state in states}
    table.caption = Text(", ".join(f"{count} {state}" for state, count in counts.items() if count), "dim")
    return table


def _state(job: Job) -> Text:
    """The word for what a job is about."""
    if job.state is State.WAITING and job.attempts > 0:
        return Text(f"waiting, retry {_retry(job, job.attempts)}", "yellow")
    if job.state is not State.RUNNING:
        return Text(job.state, _STYLES[job.state])
    word = "stopping" if job.stopping else job.progress().doing
    retry = f", retry {_retry(job, job.attempts - 1)}" if job.attempts > 1 else ""
    return Text(f"{word}{retry}", "yellow" if job.stopping else _STYLES[job.state])


def _figures(job: Job) -> dict[str, str]:
    """What there is to know of a job, by column."""
    if job.state in DONE:
        steps, parameters = (format_number(job.result.get(key), 0) for key in ("steps", "parameters"))
        return {"step": steps, "params": parameters} | ({} if job.state is State.DIVERGED else _scores(job))
    if job.state is not State.RUNNING:
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
    """What a finished run scored, by the labels of its study's metrics; empty where it was not measured."""
    return {metric.label: format_number(value_at(job.result, metric.key), metric.digits) for metric in job.metrics}


def _gpus(job: Job) -> str:
    """The GPUs a job runs on; of a long id the beginning, which nvidia-smi knows as well."""
    return ",".join(gpu[:12] for gpu in job.gpus)


def _retry(job: Job, number: int) -> str:
    return f"{number}/{job.retries}"
