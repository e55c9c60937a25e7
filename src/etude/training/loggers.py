"""Where else curves may go. Tables never depend on them: `metrics.csv` and `result.json` are the truth."""

import json
import logging
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lightning.pytorch.loggers import Logger

from etude.runs.run_dir import RunDir
from etude.runs.siblings import studies_of
from etude.runs.typed import distinguishing_overrides
from etude.runs.wandb_id import own_id
from etude.training.wandb_logger import OTHER_AXES, WandbLogger
from etude.wandb_service import end_service

if TYPE_CHECKING:
    from wandb import Run

log = logging.getLogger(__name__)

_TAGGED = ("scale", "budget", "model", "data")  # choices that one looks for in a list of runs
_NAME, _TAG = 128, 64  # characters that W&B takes


def record(loggers: Sequence[Logger], run: RunDir, result: dict[str, Any], checkpoints: Sequence[Path] = ()) -> None:
    """Hand a finished run's result to its loggers: the figures, and to W&B the sentences and the files it asks for.

    Args:
        loggers: of the run.
        run: its directory, with the sentences.
        result: what `result.json` holds.
        checkpoints: whose mean the run ends with.
    """
    files = {"source": run.sources_file, "reference": run.references_file, "hypothesis": run.hypotheses_file}
    there = {name: file("test") for name, file in files.items() if file("test").is_file()}  # none of what diverged
    lines = {name: file.read_text(encoding="utf-8").split("\n")[:-1] for name, file in there.items()}
    artifacts = {"hypotheses": [*there.values()], "checkpoint": [file for file in checkpoints if file.is_file()]}
    figures = _figures(result)
    for logger in loggers:
        try:
            if isinstance(logger, WandbLogger):
                logger.record(figures, lines, artifacts)
            else:
                numbers = {name: value for name, value in figures.items() if isinstance(value, int | float)}
                logger.log_metrics(numbers, result["steps"])
        except Exception as error:
            log.warning("%s did not take the result: %s", type(logger).__name__, error)


def finish(loggers: Sequence[Logger], *, exit_code: int) -> None:
    """Close the loggers; a failed run must not show as finished. Their troubles are no reason to lose a result."""
    for logger in loggers:
        try:
            if isinstance(logger, WandbLogger):
                logger.close(exit_code)
            else:
                logger.finalize("success" if exit_code == 0 else "failed")
        except Exception as error:
            log.warning("%s could not be closed: %s", type(logger).__name__, error)


def publish(run: RunDir) -> None:
    """Show a run that is finished already to the agent of W&B that asked for it, under the id that the agent gave."""
    config = run.config()
    kept = config.get("logger", {}).get("wandb", {})
    settings = {key: kept[key] for key in ("tags", "notes") if key in kept}
    loggers = wandb(run, config, mode="online", project="etude", entity=None, **settings)
    record(loggers, run, run.result())
    finish(loggers, exit_code=0)


def _figures(result: dict[str, Any]) -> dict[str, Any]:
    """What a result holds, flat: `test/bleu`, `parameters`, `code`."""
    flat = {
        f"{name}/{key}": value for name, part in result.items() if isinstance(part, dict) for key, value in part.items()
    }
    return flat | {name: value for name, value in result.items() if not isinstance(value, dict)}


def wandb(
    run: RunDir,
    config: dict[str, Any],
    *,
    mode: Literal["offline", "online", "disabled"],
    project: str,
    entity: str | None,
    tags: Sequence[str] = (),
    notes: str | None = None,
    artifacts: Sequence[str] = (),
) -> list[Logger]:
    """Weights & Biases, under the id that the run was begun with, so that a resumed run goes on with its curve.

    Where it is disabled there is no logger. Where the server cannot be reached, or knows no key, the run goes on
    offline and says so; where W&B cannot be
    started at all, or is switched off, without it. Under an agent of W&B, which gives the id and waits for what the run
    reports, it is online whatever the mode.
    """

    def begin(online: bool) -> list[Logger]:
        started = _start_wandb(run, config, online=online, project=project, entity=entity, notes=notes, tags=tags)
        if started.disabled:
            return []
        if not started.offline:
            log.info("W&B shows this run at %s", started.url)
        return [WandbLogger(run, started, artifacts)]

    if mode == "disabled" and not _of_an_agent():
        return []
    if mode == "online" or _of_an_agent():
        try:
            return begin(online=True)
        except Exception as error:
            folder = shlex.quote(str(run.path / "wandb"))
            message = "nothing is sent to W&B (%s); logging offline, `wandb sync %s` sends it later"
            log.warning(message, _why(error), folder)
            end_service()  # which still holds the id
    try:
        return begin(online=False)
    except Exception as error:
        log.warning("W&B cannot be started (%s); the run goes on without it", _why(error))
        end_service()
        return []


def _why(error: Exception) -> str:
    """Its first line, less a full stop and what a server has answered in JSON."""
    line = str(error).partition("\n")[0].partition(": {")[0]
    return line.rstrip(".") or type(error).__name__


def _start_wandb(run: RunDir, config: dict[str, Any], *, online: bool, tags: Sequence[str], **how: Any) -> "Run":
    """A run of W&B with all that is known before training.

    The settings keep data through a kill (a row is in the file within a second and sent within two) and never hang
    (waits are bounded).
    """
    from wandb import Settings, init

    choices, studies = config.get("choices", {}), studies_of(run)
    study, arm = next(iter(studies.items()))
    chosen = {group: choices[group] for group in _TAGGED if choices.get(group)}.items()
    started = init(
        mode=None if online else "offline",  # None: WANDB_MODE may still say otherwise
        **how,
        dir=run.path,
        id=None if _of_an_agent() else own_id(run),  # the agent gives one
        name=_name(run, config, arm),
        group=study,
        job_type=arm,
        tags=[*(f"{key}={value}"[:_TAG] for key, value in [*chosen, *(("study", one) for one in studies)]), *tags],
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
    whole = _whole({"overrides": run.overrides(), "studies": studies} | config, run.environment_file, started.config)
    started.config.update(whole, allow_val_change=True)
    _define_axes(started)
    return started


def _name(run: RunDir, config: Mapping[str, Any], arm: str) -> str:
    """Arm and seed, and what else was typed, which tells apart the trials of a search and what is no arm of a study."""
    name = " ".join([f"{arm}-seed{config['seed']}", *distinguishing_overrides(run.overrides())])
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
    for axis in ("step", *OTHER_AXES):
        started.define_metric(axis, hidden=True)
    started.define_metric("*", step_metric="step")
    started.define_metric("valid_perplexity", step_metric="step", summary="min")
    for axis in OTHER_AXES:
        started.define_metric(f"by_{axis}/*", step_metric=axis, summary="none")


def _of_an_agent() -> bool:
    return "WANDB_SWEEP_ID" in os.environ
