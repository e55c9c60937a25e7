"""How a sweep stands: a table that fills in as runs finish, or plain lines where nobody watches."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from etude.launchers.job import Job
from etude.runs.run_state import DONE, State
from etude.studies.study import value_at
from etude.terminal import console as make_console
from etude.terminal import format_duration, format_number

logger = logging.getLogger(__name__)

_STYLES = {
    State.FINISHED: "green",
    State.SKIPPED: "dim",
    State.WAITING: "dim",
    State.ELSEWHERE: "dim",
    State.RUNNING: "cyan",
    State.DIVERGED: "bold magenta",
    State.FAILED: "bold red",
    State.STOPPED: "yellow",
}
_IMPORTANCE = [
    State.RUNNING,
    State.FAILED,
    State.DIVERGED,
    State.STOPPED,
    State.FINISHED,
    State.ELSEWHERE,
    State.WAITING,
    State.SKIPPED,
]
_FIGURES = ("step", "loss", "tokens/s", "left")
_AROUND = 3  # lines that the table needs beside its rows


class Screen:
    """What a sweep tells whoever watches it; here it falls on deaf ears."""

    def started(self, job: Job) -> None:
        """`job` has begun."""

    def ended(self, job: Job) -> None:
        """`job` is finished or has failed."""

    def elsewhere(self, job: Job) -> None:
        """`job` is left to another process that works on it, or was finished by one."""

    def stopping(self, runs: int, grace: float) -> None:
        """The sweep is to stop, and so many runs have `grace` seconds to put themselves away."""

    def refresh(self) -> None:
        """Time has passed."""


@contextmanager
def screen(jobs: Sequence[Job], console: Console | None = None) -> Iterator[Screen]:
    """The live table where `console` (standard output unless told) is a terminal, else one line for each event."""
    console = console or make_console()
    if not console.is_terminal:
        yield Lines(jobs)
        return
    live = Live(console=console, auto_refresh=False)
    shown = LiveTable(jobs, live)
    live.start()
    try:
        yield shown
    finally:
        shown.refresh(whole=True)
        with suppress(OSError):
            live.stop()


class Lines(Screen):
    """One line when a run starts and one when it ends."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        logger.info("runs: %d, finished before: %d", len(jobs), sum(job.state in DONE for job in jobs))

    def started(self, job: Job) -> None:
        """One line."""
        again = f" again, retry {_retry(job, job.attempts - 1)}" if job.attempts > 1 else ""
        on = f" on GPU {_gpus(job)}" if job.gpus else ""
        logger.info("%s: started%s%s", job.name, again, on)

    def ended(self, job: Job) -> None:
        """One line; for a failure the last lines of the log too."""
        if job.state is State.FAILED:
            logger.error("%s%s", job.failure(), _another(job))
            return
        done = sum(job.state in DONE for job in self._jobs)
        if job.state is State.DIVERGED:
            logger.warning("%s (%d of %d)", _diverged(job), done, len(self._jobs))
            return
        scores = ", ".join(f"{label} {score}" for label, score in _scores(job).items() if score)
        took = format_duration(job.ended - job.started)
        logger.info("%s: finished in %s, %s (%d of %d)", job.name, took, scores, done, len(self._jobs))

    def elsewhere(self, job: Job) -> None:
        """One line."""
        by_another = "finished by" if job.state in DONE else "left to"
        logger.info("%s: %s another process", job.name, by_another)

    def stopping(self, runs: int, grace: float) -> None:
        """One line."""
        logger.warning("%s", _asked(runs, grace))


class LiveTable(Screen):
    """A row a run; what failed or diverged is told above it as it happens. A terminal that has gone ends no sweep."""

    def __init__(self, jobs: Sequence[Job], live: Live) -> None:
        self._jobs = jobs
        self._live = live

    def ended(self, job: Job) -> None:
        """The table shows it; that it failed or diverged is told at once."""
        if job.state is State.FAILED:
            self._say(Text(job.failure() + _another(job), style="red"))
        elif job.state is State.DIVERGED:
            self._say(Text(_diverged(job), style="magenta"))

    def stopping(self, runs: int, grace: float) -> None:
        """Above the table."""
        self._say(Text(_asked(runs, grace)))

    def refresh(self, whole: bool = False) -> None:
        """Draw the table anew: all of it if `whole`, else what fits on the screen."""
        room = len(self._jobs) if whole else self._live.console.height - _AROUND
        with suppress(OSError):
            self._live.update(sweep_table(self._jobs, room), refresh=True)

    def _say(self, text: Text) -> None:
        with suppress(OSError):
            self._live.console.print(text)


def sweep_table(jobs: Sequence[Job], room: int) -> Table:
    """The state of every job; where there is `room` for fewer rows, of those that matter most now."""
    table = Table(box=None, header_style="bold", caption_justify="left", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)
    table.add_column("state", no_wrap=True)
    labels = dict.fromkeys(metric.label for job in jobs for metric in job.metrics)
    headers = [*(["GPU"] if any(job.gpus for job in jobs) else []), *_FIGURES, *labels, "params"]
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    by_importance = sorted(jobs, key=lambda job: (_IMPORTANCE.index(job.state), -job.ended))
    shown = set(by_importance[: max(room, 1)])
    for job in jobs:
        if job in shown:
            figures = _figures(job)
            table.add_row(job.name, _state(job), *(figures.get(header, "") for header in headers))
    counts = {state: sum(job.state is state for job in jobs) for state in _IMPORTANCE}
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


def _diverged(job: Job) -> str:
    return f"{job.name} diverged: {job.divergence}"


def _another(job: Job) -> str:
    """What is added to the story of a failure that is not the end."""
    return f"\nit is tried again, behind those that wait: retry {_retry(job, job.attempts)}" if job.retriable else ""


def _asked(runs: int, grace: float) -> str:
    which = "1 run has" if runs == 1 else f"{runs} runs have"
    return f"stopping: {which} {grace:g} s to write a checkpoint; Ctrl-C again ends everything now"
