"""Lightning's loggers, W&B above all. No table depends on them: reports read `metrics.csv` and `result.json`."""

import logging
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from etude.files import read_json
from etude.store.overrides import distinguishing_overrides
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, write_stop
from etude.store.wandb_id import MAX_NAME, has_only_offline, make_tag, own_id
from etude.trained.weights import final_checkpoints
from etude.wandb_service import end_service, ignore_empty_variables, use_own_service

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger

    from wandb import Run

log = logging.getLogger(__name__)

_TAGGED = ("scale", "budget", "model", "data")  # choices that become tags, to filter runs by
_KEPT = "nothing is sent to W&B (%s); logging offline, `wandb sync %s` sends it later"


def record(loggers: Sequence["Logger"], run: RunDir, result: dict[str, Any], checkpoints: Sequence[Path] = ()) -> None:
    """Log the result of a finished run: the numbers to every logger, sentences and artifacts to W&B.

    Args:
        loggers: the run's loggers.
        run: the run's directory, which has the sentences.
        result: the content of `result.json`.
        checkpoints: the checkpoints whose mean is the run's final weights.
    """
    files = {"source": run.sources_file, "reference": run.references_file, "hypothesis": run.hypotheses_file}
    existing = {name: file for name, file in files.items() if file.is_file()}  # none if it diverged
    lines = {name: file.read_text(encoding="utf-8").split("\n")[:-1] for name, file in existing.items()}
    artifacts = {"hypotheses": [*existing.values()], "checkpoint": [file for file in checkpoints if file.is_file()]}
    figures = _figures(result)
    from etude.training.wandb_logger import WandbLogger  # late: it imports Lightning, as no check needs to

    for logger in loggers:
        try:
            if isinstance(logger, WandbLogger):
                logger.record(figures, lines, artifacts)
            else:
                numbers = {name: value for name, value in figures.items() if isinstance(value, int | float)}
                logger.log_metrics(numbers, result["steps"])
        except Exception as error:
            log.warning("%s did not take the result: %s", type(logger).__name__, error)


def finish(loggers: Sequence["Logger"], *, exit_code: int) -> None:
    """Close the loggers with the run's exit code, so that W&B shows a failed run as failed. Errors are only logged."""
    from etude.training.wandb_logger import WandbLogger

    for logger in loggers:
        try:
            if isinstance(logger, WandbLogger):
                logger.close(exit_code)
            else:
                logger.finalize("success" if exit_code == 0 else "failed")
        except Exception as error:
            log.warning("%s could not be closed: %s", type(logger).__name__, error)


def publish(run: RunDir) -> None:
    """Publish a run that was already finished under the id that a W&B agent has assigned."""
    config = run.config()
    kept = config.get("logger", {}).get("wandb", {})
    settings = {key: kept[key] for key in ("tags", "notes", "artifacts") if key in kept}
    loggers = wandb(run, config, mode="online", project="etude", entity=None, **settings)
    record(loggers, run, run.result(), final_checkpoints(run, config) if settings.get("artifacts") else ())
    finish(loggers, exit_code=0)


def _figures(result: dict[str, Any]) -> dict[str, Any]:
    """Flatten a result: `test/bleu`, `parameters`."""
    parts = {name: part for name, part in result.items() if isinstance(part, dict) and name != "scored_by"}
    flat = {f"{name}/{key}": value for name, part in parts.items() for key, value in part.items()}
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
) -> list["Logger"]:
    """Make the logger for Weights & Biases, with the id that the run was begun with, so that its curve continues.

    There is none in mode "disabled". If the server cannot be reached or accepts no key, the run logs offline, with a
    warning; if W&B cannot be started at all or is switched off, without W&B. It also goes on offline if callbacks have
    logged rows offline, which only `wandb sync` can send. Under a W&B agent, which assigns the id and waits for
    results, the mode is always "online".
    """

    def begin(online: bool) -> list["Logger"]:
        started = _start_wandb(run, config, online=online, project=project, entity=entity, notes=notes, tags=tags)
        if started.disabled:
            log.warning("WANDB_MODE=disabled switches W&B off: the run goes on without it")
            return []
        if not started.offline:
            log.info("W&B shows this run at %s", started.url)
        elif online:
            log.warning(_KEPT, "WANDB_MODE=offline", folder)
        from etude.training.wandb_logger import WandbLogger

        return [WandbLogger(run, started, artifacts)]

    ignore_empty_variables()
    folder, why = shlex.quote(str(run.path / "wandb")), ""
    if mode == "disabled" and not _of_an_agent():
        return []
    if mode == "online" and has_only_offline(run) and not _of_an_agent():
        why = "callbacks have logged rows offline, which are to come first"
    elif mode == "online" or _of_an_agent():
        try:
            return begin(online=True)
        except Exception as error:
            why = _reason(error)
            end_service()  # it would keep the id in use
    try:
        loggers = begin(online=False)
    except Exception as error:
        log.warning("W&B cannot be started (%s); the run goes on without it", _reason(error))
        end_service()
        return []
    if why:
        log.warning(_KEPT, why, folder)
    return loggers


def _reason(error: Exception) -> str:
    """Return the first line of an error, without its full stop and without the JSON of a server's response.

    Where W&B refuses a setting, that is the setting and why.
    """
    if callable(errors := getattr(error, "errors", None)):  # a ValidationError of pydantic, which is slow to import
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in errors())
    line = str(error).partition("\n")[0].partition(": {")[0]
    return line.rstrip(".") or type(error).__name__


def _start_wandb(run: RunDir, config: dict[str, Any], *, online: bool, tags: Sequence[str], **how: Any) -> "Run":
    """Start a W&B run with its config, tags and axes.

    The settings keep the data of a process that is killed (a row is in the file within one second, and sent within two)
    and bound all waits.
    """
    from wandb import Settings, init, setup

    choices, (study, arm) = config.get("choices", {}), run.path.parts[-3:-1]
    use_own_service()
    setup(Settings(silent=True))  # without a key it would ask for one, and wait
    chosen = {group: choices[group] for group in _TAGGED if choices.get(group)}.items()
    started = init(
        mode=None if online else "offline",  # None: the environment variable WANDB_MODE applies
        **how,
        dir=run.path,
        id=None if _of_an_agent() else own_id(run),  # the agent gives one
        name=_name(run, config, arm),
        group=study,
        job_type=arm,
        tags=[*(make_tag(*one) for one in [*chosen, ("study", study)]), *tags],
        resume="allow",
        settings=Settings(
            x_transaction_log_flush_interval=1,
            x_file_stream_transmit_interval=2,
            init_timeout=3,
            finish_timeout=10,
            finish_timeout_raises=True,
            x_save_requirements=False,  # slow; the config holds the versions that matter
            silent=True,
            console="off",
            # W&B's Hyperband ends a run of an agent for good; the button on its page may only interrupt one of ours
            stop_fn=lambda: write_stop(run, Stop(0, State.PRUNED if _of_an_agent() else State.PAUSED)),
        ),
    )
    written = run.written_file.read_text(encoding="utf-8") if run.written_file.is_file() else ""
    config = {"overrides": run.overrides(), "written": written} | config
    started.config.update(_wandb_config(config, run.environment_file, started.config), allow_val_change=True)
    _define_axes(started)
    return started


def _name(run: RunDir, config: Mapping[str, Any], arm: str) -> str:
    """Name a run by arm, seed and further overrides, which distinguish the trials of a search and single runs."""
    name = " ".join([f"{arm}-seed{config['seed']}", *distinguishing_overrides(run.overrides())])
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _wandb_config(config: dict[str, Any], environment_file: Path, existing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config and the environment for W&B, without values that `existing`, W&B's config, already has.

    A W&B sweep sets a group's choice, such as `budget: smoke`, under the name of our section, and W&B locks it. The
    section's keys are then written with dots: `budget.max_steps`.
    """
    environment = read_json(environment_file) or {}
    whole = config | {"environment": environment, "results_version": environment.get("results_version")}
    for name, section in config.items():
        if isinstance(section, dict) and isinstance(existing.get(name), str):
            whole |= {f"{name}.{key}": value for key, value in whole.pop(name).items()}
    return {name: value for name, value in whole.items() if existing.get(name) != value}


def _define_axes(started: "Run") -> None:
    """Define W&B's axes: curves over steps, perplexity over tokens and seconds too, with its minimum as summary."""
    from etude.training.wandb_logger import OTHER_AXES

    for axis in ("step", *OTHER_AXES):
        started.define_metric(axis, hidden=True)
    started.define_metric("*", step_metric="step")
    started.define_metric("valid_perplexity", step_metric="step", summary="min")
    for axis in OTHER_AXES:
        started.define_metric(f"by_{axis}/*", step_metric=axis, summary="none")


def _of_an_agent() -> bool:
    return bool(os.environ.get("WANDB_SWEEP_ID"))
