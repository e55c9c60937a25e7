"""Log one run to Weights & Biases: its rows and its result. No result depends on it, and its errors end no run."""

import logging
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch.loggers import Logger

from etude.store.metrics_file import read_metrics
from etude.store.run_dir import RunDir
from etude.store.wandb_id import format_row, keep_rows, read_rows
from etude.wandb_service import end_service

if TYPE_CHECKING:
    from wandb import Run

log = logging.getLogger(__name__)

_UPLOAD = 3600  # seconds for an artifact to arrive
OTHER_AXES = ("tokens", "seconds")  # of the curve of validation perplexity, in addition to steps


class WandbLogger(Logger):
    """A logger for a W&B run. Rows are numbered as in `metrics.csv`, so that each is logged once, across processes.

    A resumed run first logs the rows of `metrics.csv` that W&B lacks, because the process was killed before it sent
    them or because the server has none. Rows of steps that are trained a second time are not logged again. What
    callbacks log makes rows of its own, which `metrics.csv` lacks.

    Args:
        run: the run's directory.
        started: the W&B run.
        artifacts: what to upload when the run is finished: "checkpoint", "hypotheses".
    """

    def __init__(self, run: RunDir, started: "Run", artifacts: Sequence[str] = ()) -> None:
        super().__init__()
        self.experiment, self.artifacts = started, artifacts
        self._of_callbacks = (0, 0)  # the step at which callbacks last logged, and how many rows
        self._best = math.inf  # validation perplexity, of all rows
        self._offline_files = [] if started.offline else [*run.path.glob(f"wandb/offline-run-*/run-{started.id}.wandb")]
        known = read_rows(run, str(started.id))
        logged = len(known) if started.offline else started.starting_step  # online, the server's count
        self._logged = keep_rows(run, str(started.id), known[:logged] + [None] * (logged - len(known)))
        self._next: float = logged  # rows with smaller numbers have been logged
        complete = len(known) >= logged and None not in known[:logged]
        # row -> its number; metrics.csv lacks those that are trained again, and those of callbacks
        self._numbers = {row: number for number, row in enumerate(known[:logged]) if row and complete}
        self._free = logged if complete else 0  # the number of the next new row
        for row in read_metrics(run.metrics_file):
            self.log_metrics({k: float(v) for k, v in row.items() if v and k != "step"}, int(row["step"]))
        self._free = max(self._free, logged)  # if the file has lost rows, new ones must not take their numbers

    @property
    def name(self) -> str:
        """The name of this kind of logger."""
        return "wandb"

    @property
    def version(self) -> str:
        """The run's id."""
        return str(self.experiment.id)

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the whole config is logged when the W&B run starts."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log one row of `metrics.csv` or of a callback, unless it has been logged."""
        key = (step or 0, self._kind(metrics, step or 0))
        if key not in self._numbers:
            self._numbers[key], self._free = self._free, self._free + 1
        number = self._numbers[key]
        self._best = min(self._best, metrics.get("valid_perplexity", math.inf))
        if number < self._next:
            return
        row = {"step": step, **metrics}
        validated = "valid_perplexity" in row
        if validated:
            row |= {f"by_{axis}/valid_perplexity": row["valid_perplexity"] for axis in OTHER_AXES}
        try:
            self.experiment.log(row, step=number, commit=True)  # an uncommitted row would be lost with its process
            if validated:  # W&B's client knows the minimum of this process alone
                self.experiment.summary["valid_perplexity"] = {"min": self._best}
        except Exception as error:  # W&B's own process has died
            log.warning("W&B takes no more rows (%s); the run goes on without it", error)
            self._next = math.inf
        else:
            self._logged.write(format_row(key))
            self._next = number + 1

    def _kind(self, metrics: Mapping[str, float], step: int) -> str:
        """Return what tells a row from the others of its step: "", "v", "c1", "c2", ... as in `wandb/<id>.rows`."""
        if "valid_loss" in metrics:
            return "v"
        if "loss" in metrics:
            return ""
        last, rows = self._of_callbacks
        self._of_callbacks = (step, rows + 1 if step == last else 1)
        return f"c{self._of_callbacks[1]}"

    def record(
        self, summary: Mapping[str, Any], lines: Mapping[str, list[str]], artifacts: Mapping[str, Sequence[Path]]
    ) -> None:
        """Log a result: its numbers, a table of its sentences, and artifacts. A run that diverged gets a tag.

        Args:
            summary: numbers by name.
            lines: lines of the test set by kind: source, reference, hypothesis; empty if there are none.
            artifacts: the files of each artifact; those in `self.artifacts` are uploaded.
        """
        from wandb import Artifact, Table

        self.experiment.summary.update(dict(summary))
        if "diverged" in summary:
            self.experiment.tags = (*(self.experiment.tags or ()), "diverged")
        if lines:
            table = Table(list(lines), [list(row) for row in zip(*lines.values(), strict=True)])
            self.experiment.log({"hypotheses": table})
        for name in self.artifacts:
            artifact = Artifact(f"{name}-{self.version}", type="model" if name == "checkpoint" else name)
            for file in artifacts[name]:
                artifact.add_file(str(file))
            logged = self.experiment.log_artifact(artifact)
            if not self.experiment.offline:  # `wandb sync` would not send it later
                logged.wait(_UPLOAD)

    def close(self, exit_code: int) -> None:
        """Send the remaining data; after a timeout, log how to send the rest."""
        self._logged.close()
        folder = self.experiment.settings.sync_dir
        try:
            self.experiment.finish(exit_code=exit_code)
        except TimeoutError:
            log.warning("W&B has not taken everything; `wandb sync --include-online %s` sends it", shlex.quote(folder))
            end_service()
        else:
            for part in self._offline_files:  # rows that were logged offline have been sent as well
                part.with_name(f"{part.name}.synced").touch()
