"""One run on Weights & Biases: its config, its rows, its result. No result depends on it, and none is lost by it."""

import logging
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch.loggers import Logger

from etude.runs.run_dir import RunDir
from etude.runs.wandb_id import rows_file
from etude.training.metrics_writers import read_metrics
from etude.wandb_service import end_service

if TYPE_CHECKING:
    from wandb import Run

log = logging.getLogger(__name__)

OTHER_AXES = ("tokens", "seconds")  # what the curve is drawn over, beside steps


class WandbLogger(Logger):
    """A run that W&B knows. Rows are numbered as in `metrics.csv`, so that each is logged once, whoever logs it.

    A run that goes on begins with the rows that W&B lacks: those of `metrics.csv` that never left a killed process, or
    all of them where the server has none. What it trains a second time is left out.

    Args:
        run: the directory.
        started: what W&B made of it.
        artifacts: what of a finished run is kept there: "checkpoint", "hypotheses".
    """

    def __init__(self, run: RunDir, started: "Run", artifacts: Sequence[str] = ()) -> None:
        super().__init__()
        self.experiment, self.artifacts = started, artifacts
        self._held: dict[str, float] = {}
        self._before = [] if started.offline else [*run.path.glob(f"wandb/offline-run-*/run-{started.id}.wandb")]
        self._logged = rows_file(run, str(started.id)).open("ab", buffering=0)
        logged = self._logged.tell() if started.offline else started.starting_step  # the server knows what it has
        self._logged.truncate(logged)
        self._next: float = logged
        self._numbers: dict[tuple[int, bool], int] = {}
        self._free = 0  # the number of the next row that is new
        for row in read_metrics(run.metrics_file):
            self.log_metrics({k: float(v) for k, v in row.items() if v and k != "step"}, int(row["step"]))
        self._free = max(self._free, logged)  # where the file has lost rows, new ones do not take their numbers

    @property
    def name(self) -> str:
        """Of the kind of logger."""
        return "wandb"

    @property
    def version(self) -> str:
        """The run's id."""
        return str(self.experiment.id)

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: the whole config is there from the beginning."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log one row of `metrics.csv`, unless it has been logged; what callbacks log goes with the next one."""
        if not {"loss", "valid_loss"} & metrics.keys():
            self._held |= metrics
            return
        key = (step or 0, "valid_loss" in metrics)
        if key not in self._numbers:
            self._numbers[key], self._free = self._free, self._free + 1
        number = self._numbers[key]
        if number < self._next:
            return
        row, self._held = {**self._held, "step": step, **metrics}, {}
        if "valid_perplexity" in row:
            row |= {f"by_{axis}/valid_perplexity": row["valid_perplexity"] for axis in OTHER_AXES}
        try:
            self.experiment.log(row, step=number, commit=True)  # committed: a row held back dies with its process
        except Exception as error:  # W&B's own process has died
            log.warning("W&B takes no more rows (%s); the run goes on without it", error)
            self._next = math.inf
        else:
            self._logged.write(b".")
            self._next = number + 1

    def record(
        self,
        summary: Mapping[str, Any],
        lines: Mapping[str, list[str]],
        artifacts: Mapping[str, Sequence[Path]],
    ) -> None:
        """The figures of a result, and its sentences side by side; a run that diverged is tagged so.

        Args:
            summary: figures by name.
            lines: of the test set by what they are: source, reference, hypothesis; empty where there are none.
            artifacts: the files of each, of which those that were asked for are kept.
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
            self.experiment.log_artifact(artifact)

    def close(self, exit_code: int) -> None:
        """Send what is left, for a while; say how to send the rest where that was not long enough."""
        self._logged.close()
        folder = self.experiment.settings.sync_dir
        try:
            self.experiment.finish(exit_code=exit_code)
        except TimeoutError:
            log.warning("W&B has not taken everything; `wandb sync --include-online %s` sends it", shlex.quote(folder))
            end_service()
        else:
            for part in self._before:  # what was logged offline has been sent with the rest
                part.with_name(f"{part.name}.synced").touch()
