"""Where else curves may go. Tables never depend on them: `metrics.csv` and `result.json` are the truth."""

import logging
from typing import Any, Literal

from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger

from etude.errors import UserError
from etude.rundir import RunDir

log = logging.getLogger(__name__)


def none(run: RunDir, config: dict[str, Any]) -> list[Logger]:
    """Nowhere."""
    return []


def tensorboard(run: RunDir, config: dict[str, Any]) -> list[Logger]:
    """TensorBoard files beside the run's own.

    Raises:
        UserError: TensorBoard is not installed.
    """
    try:
        return [TensorBoardLogger(run.path, name="tensorboard", version="")]
    except ModuleNotFoundError as error:
        raise UserError("logger=tensorboard needs TensorBoard: pip install 'etude[tensorboard]'") from error


def wandb(
    run: RunDir, config: dict[str, Any], *, mode: Literal["offline", "online"], project: str, entity: str | None
) -> list[Logger]:
    """Weights & Biases, under the run's own id, so that a resumed run goes on with its curve.

    Where the server cannot be reached, or knows no key, the run goes on offline and says so.
    """
    from wandb import teardown
    from wandb.errors import Error

    logger = _wandb_logger(run, config, offline=mode == "offline", project=project, entity=entity)
    try:
        _ = logger.experiment  # connects
    except Error as error:
        reason = str(error).splitlines()[0]
        log.warning(
            "W&B cannot be reached (%s); logging offline, `wandb sync %s/wandb/*` sends it later", reason, run.path
        )
        teardown()  # its service still holds the id
        logger = _wandb_logger(run, config, offline=True, project=project, entity=entity)
    return [logger]


def _wandb_logger(
    run: RunDir, config: dict[str, Any], *, offline: bool, project: str, entity: str | None
) -> WandbLogger:
    """Settings that keep data through a kill (rows are flushed within a second) and never hang (waits are bounded)."""
    from wandb import Settings

    identity = run.path.name.rpartition("-")[2]
    return WandbLogger(
        name=f"{config['arm']}-seed{config['seed']}",
        save_dir=run.path,
        offline=offline,
        id=identity,
        project=project,
        entity=entity,
        group=config["study"],
        job_type=config["arm"],
        config=config,
        resume="allow",
        settings=Settings(
            x_transaction_log_flush_interval=1,
            finish_timeout=10,
            init_timeout=5,
            login_timeout=5,
            x_graphql_retry_max=1,
            silent=True,
            console="off",
        ),
    )


def finish(loggers: list[Logger], summary: dict[str, Any], exit_code: int) -> None:
    """Close the loggers; a failed run must not show as finished. Their troubles are no reason to lose a result."""
    for logger in loggers:
        try:
            if isinstance(logger, WandbLogger):
                logger.experiment.summary.update(summary)
                logger.experiment.finish(exit_code=exit_code)
            else:
                logger.finalize("success" if exit_code == 0 else "failed")
        except Exception as error:
            log.warning("%s could not be closed: %s", type(logger).__name__, error)
