"""Where else curves may go. Tables never depend on them: `metrics.csv` and `result.json` are the truth."""

from typing import Any

from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger

from etude.rundir import RunDir


def none(run: RunDir, config: dict[str, Any]) -> list[Logger]:
    """Nowhere."""
    return []


def tensorboard(run: RunDir, config: dict[str, Any]) -> list[Logger]:
    """TensorBoard files beside the run's own."""
    return [TensorBoardLogger(run.path, name="tensorboard", version="")]


def wandb(run: RunDir, config: dict[str, Any], *, mode: str, project: str, entity: str | None) -> list[Logger]:
    """Weights & Biases, under the run's own id, so that a resumed run goes on with its curve.

    Settings that keep data through a kill (every row is flushed within a second) and never hang (bounded waits).
    """
    from wandb import Settings

    identity = run.path.name.rpartition("-")[2]
    logger = WandbLogger(
        name=f"{config['arm']}-seed{config['seed']}",
        save_dir=run.path,
        offline=mode == "offline",
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
    return [logger]


def finish(loggers: list[Logger], summary: dict[str, Any], exit_code: int) -> None:
    """Close the loggers; a failed run must not show as finished."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.experiment.summary.update(summary)
            logger.experiment.finish(exit_code=exit_code)
        else:
            logger.finalize("success" if exit_code == 0 else "failed")
