"""Where the rows of a run go: a file of curves, a file for onlookers, a bar on the terminal, Lightning's loggers."""

import csv
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import gcd, lcm
from pathlib import Path
from typing import Any, Protocol

from lightning.pytorch.loggers import Logger
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from etude.errors import UserError
from etude.files import write_json, write_text

COLUMNS = (
    "step",
    "tokens",  # real target tokens trained on
    "seconds",  # of training, validation included
    "loss",  # nats a target token, as trained (smoothed), mean since the last row
    "learning_rate",
    "tokens_per_second",  # real target tokens, validation not counted
    "valid_loss",  # nats a subword, unsmoothed
    "valid_perplexity",
)

Row = dict[str, Any]  # some of COLUMNS, and `seconds_left`

log = logging.getLogger(__name__)


class Sink(Protocol):
    """Takes rows. A column that a row lacks has no new value."""

    def write(self, row: Row) -> None:
        """Take one row."""


class MetricsFile:
    """`metrics.csv`: every row, appended at once.

    Args:
        path: the file.
        step: training goes on from here; rows after it are forgotten.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = [row for row in read_metrics(path) if int(row["step"]) <= step]
        lines = [",".join(COLUMNS), *(",".join(row.get(name, "") for name in COLUMNS) for row in kept)]
        write_text(path, "\n".join(lines) + "\n")

    def write(self, row: Row) -> None:
        """Append one row.

        Raises:
            UserError: the file cannot be written.
        """
        try:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n").writerow(row)
        except OSError as error:
            raise UserError(
                f"cannot write {self.path}: {error.strerror}; free some space and start the same command again: "
                "the run goes on from its last checkpoint"
            ) from error


def read_metrics(path: Path) -> list[dict[str, str]]:
    """The rows of a metrics file, without one that a killed run may have torn; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if None not in row.values() and row.get("step", "").isdigit()]


def missing_steps(path: Path, step: int, *, every: int, val_every: int) -> list[int]:
    """The steps up to `step` that a metrics file has lost a row of: of training, or of a validation.

    Where the run was begun with another interval, only steps of both can be missed.
    """
    rows = read_metrics(path)
    missing: set[int] = set()
    for column, interval in (("loss", every), ("valid_loss", val_every)):
        there = {int(row["step"]) for row in rows if row.get(column)}
        both = lcm(interval, gcd(*there)) if there else interval
        missing |= set(range(both, step + 1, both)) - there
    return sorted(missing)


class ProgressFile:
    """`progress.json`: where the run stands, for whoever watches from outside."""

    def __init__(self, path: Path, max_steps: int) -> None:
        self.path, self.max_steps = path, max_steps

    def write(self, row: Row) -> None:
        """Replace what stood there."""
        if "loss" in row:
            shown = {key: row[key] for key in ("step", "loss", "tokens_per_second", "seconds_left")}
            write_json(self.path, {"state": "training", "max_steps": self.max_steps} | shown)

    def evaluating(self, step: int) -> None:
        """Training is over, at a step."""
        write_json(self.path, {"state": "evaluating", "step": step, "max_steps": self.max_steps})


class LoggerSink:
    """One of Lightning's loggers."""

    def __init__(self, logger: Logger) -> None:
        self.logger = logger

    def write(self, row: Row) -> None:
        """Log the row's columns at its step."""
        self.logger.log_metrics({k: v for k, v in row.items() if k not in ("step", "seconds_left")}, step=row["step"])


class LogSink:
    """A line in the log for every validation, with the training loss before it."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self._last: Row = {}

    def write(self, row: Row) -> None:
        """Remember, or say."""
        self._last |= row
        if "valid_perplexity" in row and "loss" in self._last:
            log.info(
                "step %d/%d  loss %.3f  validation perplexity %.2f  %.0f tokens/s  %.0f s",
                row["step"],
                self.max_steps,
                self._last["loss"],
                row["valid_perplexity"],
                self._last["tokens_per_second"],
                row["seconds"],
            )


class Bar:
    """A progress bar on a terminal; nothing elsewhere."""

    def __init__(self, console: Console, max_steps: int) -> None:
        self.progress = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}  valid ppl {task.fields[ppl]}  {task.fields[rate]} tokens/s"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self.task = self.progress.add_task("", total=max_steps, loss="–", ppl="–", rate="–")

    @contextmanager
    def shown(self) -> Iterator[None]:
        """On the terminal meanwhile; one that has gone is no reason to lose what was trained."""
        self.progress.start()
        try:
            yield
        finally:
            with suppress(OSError):
                self.progress.stop()

    def write(self, row: Row) -> None:
        """Move the bar."""
        shown = {"loss": ("loss", ".3f"), "ppl": ("valid_perplexity", ".2f"), "rate": ("tokens_per_second", ",.0f")}
        fields: dict[str, Any] = {
            field: format(row[column], form) for field, (column, form) in shown.items() if column in row
        }
        self.progress.update(self.task, completed=row["step"], **fields)
