"""Sinks for rows of metrics: `metrics.csv`, `progress.json`, the log, a progress bar, and Lightning's loggers."""

import csv
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from lightning.pytorch.loggers import Logger
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from etude.errors import UserError
from etude.files import read_json, write_json, write_text
from etude.store.metrics_file import read_metrics

COLUMNS = (
    "step",
    "tokens",  # real target tokens trained on
    "seconds",  # of training, including validation
    "loss",  # nats per target token, with label smoothing, mean since the last row
    "learning_rate",
    "tokens_per_second",  # real target tokens, without the time of validation
    "valid_loss",  # nats per target token, without label smoothing
    "valid_perplexity",
)

_QUIET = 60.0  # seconds without a line, after which there is one even without a validation

Row = dict[str, Any]  # some of COLUMNS, and `seconds_left`

log = logging.getLogger(__name__)


class Sink(Protocol):
    """A destination of rows. A column that a row lacks has no new value."""

    def write(self, row: Row) -> None:
        """Write one row."""


class MetricsFile:
    """Appends every row to `metrics.csv` at once.

    Args:
        path: the file.
        step: the step that training resumes from; rows after it are removed.
        scores: names of further columns, scores of each validation.
    """

    def __init__(self, path: Path, step: int, scores: Sequence[str] = ()) -> None:
        self.path = path
        kept = [row for row in read_metrics(path) if int(row["step"]) <= step]
        self.columns = [*dict.fromkeys([*COLUMNS, *scores, *(column for row in kept[:1] for column in row)])]
        lines = [",".join(self.columns), *(",".join(row.get(name, "") for name in self.columns) for row in kept)]
        write_text(path, "\n".join(lines) + "\n")

    def write(self, row: Row) -> None:
        """Append one row.

        Raises:
            UserError: the file cannot be written.
        """
        try:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, self.columns, extrasaction="ignore", lineterminator="\n").writerow(row)
        except OSError as error:
            raise UserError(
                f"cannot write {self.path}: {error.strerror}; free some space and start the same command again: "
                "the run goes on from its last checkpoint"
            ) from error


def missing_steps(path: Path, step: int, *, every: int) -> list[int]:
    """Return the steps up to `step` for which a metrics file lacks its row of training, of which it has one `every`.

    Rows of validation are not asked for: a run may have been begun with another `budget.val_every`. A shorter training
    that is trained further may have had more rows.
    """
    there = {-(-int(row["step"]) // every) for row in read_metrics(path) if row.get("loss")}
    return [number * every for number in range(1, step // every + 1) if number not in there]


class ProgressFile:
    """Keeps the state of the run in `progress.json`, for other processes to read."""

    def __init__(self, path: Path, max_steps: int) -> None:
        self.path, self.max_steps = path, max_steps

    def starting(self) -> None:
        """Write that a process has started; how far an earlier one came stays."""
        before = read_json(self.path) or {}
        kept = {key: before[key] for key in ("step", "max_steps") if key in before}
        write_json(self.path, {"state": "starting"} | kept)

    def write(self, row: Row) -> None:
        """Replace the file, if the row has a training loss."""
        if "loss" in row:
            self.put("training", **{key: row[key] for key in ("step", "loss", "tokens_per_second", "seconds_left")})

    def put(self, state: str, **fields: Any) -> None:
        """Replace the file by a state, such as "evaluating", and its fields, such as the step."""
        write_json(self.path, {"state": state, "max_steps": self.max_steps} | fields)


class LoggerSink:
    """Passes rows to one of Lightning's loggers."""

    def __init__(self, logger: Logger) -> None:
        self.logger = logger

    def write(self, row: Row) -> None:
        """Log the row's columns at its step."""
        self.logger.log_metrics({k: v for k, v in row.items() if k not in ("step", "seconds_left")}, step=row["step"])


class LogSink:
    """Logs a line for every validation, with the last training loss before it; and one a minute between them."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self._last: Row = {}
        self._logged = 0.0  # the seconds of training at the last line

    def write(self, row: Row) -> None:
        """Remember the row; after a validation, or a minute after the last line, log one."""
        self._last |= row
        validated = "valid_perplexity" in row
        if "loss" in self._last and (validated or row["seconds"] - self._logged >= _QUIET):
            self._logged = row["seconds"]
            log.info(
                "step %d/%d  loss %.3f%s%s  %.0f tokens/s  %.0f s",
                row["step"],
                self.max_steps,
                self._last["loss"],
                f"  validation perplexity {row['valid_perplexity']:.2f}" if validated else "",
                "".join(
                    f"  {name.removeprefix('valid_')} {value:.2f}"
                    for name, value in row.items()
                    if name.startswith("valid_") and name not in COLUMNS
                ),
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
        """Show the bar inside the context."""
        self.progress.start()
        try:
            yield
        finally:
            with suppress(OSError):  # a closed terminal must not end the run
                self.progress.stop()

    def write(self, row: Row) -> None:
        """Update the bar."""
        shown = {"loss": ("loss", ".3f"), "ppl": ("valid_perplexity", ".2f"), "rate": ("tokens_per_second", ",.0f")}
        fields: dict[str, Any] = {
            field: format(row[column], form) for field, (column, form) in shown.items() if column in row
        }
        self.progress.update(self.task, completed=row["step"], **fields)
