"""One run on Weights & Biases: its config, its rows, its result. No result depends on it, and none is lost by it."""

import json
import logging
import math
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lightning.pytorch.loggers import Logger

from etude.runs.run_dir import RunDir
from etude.runs.typed import distinguishing_overrides
from etude.runs.wandb_id import own_id, rows_file
from etude.training.metrics_writers import read_metrics
from etude.wandb_service import end_service

if TYPE_CHECKING:
    from wandb import Run

log = logging.getLogger(__name__)

_TAGGED = ("scale", "budget", "model", "data")  # choices that one looks for in a list of runs
_NAME = 128  # characters that W&B takes
_OTHER_AXES = ("tokens", "seconds")  # what the curve is drawn over, beside steps


class WandbLogger(Logger):
    """A run that W&B knows. Rows are numbered as in `metrics.csv`, so that each is logged once, whoever logs it.

    A run that goes on begins with the rows that W&B lacks: those of `metrics.csv` that never left a killed process, or
    all of them where the server has none. What it trains a second time is left out.

    Args:
        run: the directory.
        started: what W&B made of it.
    """

    def __init__(self, run: RunDir, started: "Run") -> None:
        super().__init__()
        self.experiment = started
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
        """Log one row of `metrics.csv`, unless it has been logged."""
        key = (step or 0, "valid_loss" in metrics)
        if key not in self._numbers:
            self._numbers[key], self._free = self._free, self._free + 1
        number = self._numbers[key]
        if number < self._next:
            return
        row = {"step": step, **metrics}
        if "valid_perplexity" in row:
            row |= {f"by_{axis}/valid_perplexity": row["valid_perplexity"] for axis in _OTHER_AXES}
        try:
            self.experiment.log(row, step=number, commit=True)  # committed: a row held back dies with its process
        except Exception as error:  # W&B's own process has died
            log.warning("W&B takes no more rows (%s); the run goes on without it", error)
            self._next = math.inf
        else:
            self._logged.write(b".")
            self._next = number + 1

    def record(self, summary: Mapping[str, Any], lines: Mapping[str, list[str]]) -> None:
        """The figures of a result, and its sentences side by side; a run that diverged is tagged so.

        Args:
            summary: figures by name.
            lines: of the test set by what they are: source, reference, hypothesis; empty where there are none.
        """
        from wandb import Table

        self.experiment.summary.update(dict(summary))
        if "diverged" in summary:
            self.experiment.tags = (*(self.experiment.tags or ()), "diverged")
        if lines:
            table = Table(list(lines), [list(row) for row in zip(*lines.values(), strict=True)])
            self.experiment.log({"hypotheses": table})

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


def wandb(
    run: RunDir, config: dict[str, Any], *, mode: Literal["offline", "online"], project: str, entity: str | None
) -> list[Logger]:
    """Weights & Biases, under the id that the run was begun with, so that a resumed run goes on with its curve.

    Where the server cannot be reached, or knows no key, the run goes on offline and says so; where W&B cannot be
    started at all, without it. Under an agent of W&B, which gives the id and waits for what the run reports, it is
    online whatever the mode.
    """

    def begin(online: bool) -> list[Logger]:
        started = _started(run, config, online=online, project=project, entity=entity)
        if started.disabled:
            return []
        if not started.offline:
            log.info("W&B shows this run at %s", started.url)
        return [WandbLogger(run, started)]

    if mode == "online" or _of_an_agent():
        try:
            return begin(online=True)
        except Exception as error:
            folder = shlex.quote(str(run.path / "wandb"))
            told = "W&B cannot be reached (%s); logging offline, `wandb sync %s` sends it later"
            log.warning(told, _first_line(error), folder)
            end_service()  # which still holds the id
    try:
        return begin(online=False)
    except Exception as error:
        log.warning("W&B cannot be started (%s); the run goes on without it", _first_line(error))
        end_service()
        return []


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _started(run: RunDir, config: dict[str, Any], *, online: bool, project: str, entity: str | None) -> "Run":
    """A run of W&B with all that is known before training.

    The settings keep data through a kill (a row is in the file within a second and sent within two) and never hang
    (waits are bounded).
    """
    from wandb import Settings, init

    choices = config.get("choices", {})
    started = init(
        mode=None if online else "offline",  # None: WANDB_MODE may still say otherwise
        project=project,
        entity=entity,
        dir=run.path,
        id=None if _of_an_agent() else own_id(run),  # the agent gives one
        name=_name(run, config),
        group=config["study"],
        job_type=config["arm"],
        tags=[f"{group}={choices[group]}"[:64] for group in _TAGGED if choices.get(group)],
        resume="allow",
        settings=Settings(
            x_transaction_log_flush_interval=1,
            x_file_stream_transmit_interval=2,
            init_timeout=3,
            finish_timeout=10,
            finish_timeout_raises=True,
            x_save_requirements=False,  # which takes a while; the config holds the versions that count
            silent=True,
            console="off",
        ),
    )
    whole = _whole({"overrides": run.overrides()} | config, run.environment_file, started.config)
    started.config.update(whole, allow_val_change=True)
    _define_axes(started)
    return started


def _name(run: RunDir, config: Mapping[str, Any]) -> str:
    """Arm and seed, and what else was typed, which tells apart the trials of a search and what is no arm of a study."""
    name = " ".join([f"{config['arm']}-seed{config['seed']}", *distinguishing_overrides(run.overrides())])
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def _whole(config: dict[str, Any], environment_file: Path, held: Mapping[str, Any]) -> dict[str, Any]:
    """The config and where it runs, less what a sweep has said already.

    A sweep's word for a group, such as `budget: smoke`, stands where our section of that name should: W&B locks it, and
    the section's keys go beside it with dots.
    """
    environment = json.loads(environment_file.read_text(encoding="utf-8")) if environment_file.is_file() else {}
    whole = config | {"environment": environment, "code": environment.get("code")}
    for name, section in config.items():
        if isinstance(section, dict) and isinstance(held.get(name), str):
            whole |= {f"{name}.{key}": value for key, value in whole.pop(name).items()}
    return {name: value for name, value in whole.items() if held.get(name) != value}


def _define_axes(started: "Run") -> None:
    """A dashboard without clicks: curves over steps, perplexity over tokens and seconds too, and its best value."""
    for axis in ("step", *_OTHER_AXES):
        started.define_metric(axis, hidden=True)
    started.define_metric("*", step_metric="step")
    started.define_metric("valid_perplexity", step_metric="step", summary="min")
    for axis in _OTHER_AXES:
        started.define_metric(f"by_{axis}/*", step_metric=axis, summary="none")


def _of_an_agent() -> bool:
    return "WANDB_SWEEP_ID" in os.environ
