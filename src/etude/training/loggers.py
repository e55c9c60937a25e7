"""Where else curves may go. Tables never depend on them: `metrics.csv` and `result.json` are the truth."""

import logging
from collections.abc import Sequence
from typing import Any

from lightning.pytorch.loggers import Logger, TensorBoardLogger

from etude.errors import UserError
from etude.runs.run_dir import RunDir
from etude.training.wandb_logger import WandbLogger, wandb

__all__ = ["finish", "none", "publish", "record", "tensorboard", "wandb"]

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


def record(loggers: Sequence[Logger], run: RunDir, result: dict[str, Any]) -> None:
    """Hand a finished run's result to its loggers: the figures, and where there are tables, the sentences.

    Args:
        loggers: of the run.
        run: its directory, with the sentences.
        result: what `result.json` holds.
    """
    files = {"source": run.sources_file, "reference": run.references_file, "hypothesis": run.hypotheses_file}
    there = {name: file("test") for name, file in files.items() if file("test").is_file()}  # none of what diverged
    lines = {name: file.read_text(encoding="utf-8").split("\n")[:-1] for name, file in there.items()}
    figures = _figures(result)
    for logger in loggers:
        try:
            if isinstance(logger, WandbLogger):
                logger.record(figures, lines)
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
    loggers = wandb(run, run.config(), mode="online", project="etude", entity=None)
    record(loggers, run, run.result())
    finish(loggers, exit_code=0)


def _figures(result: dict[str, Any]) -> dict[str, Any]:
    """What a result holds, flat: `test/bleu`, `parameters`, `code`."""
    flat = {
        f"{name}/{key}": value for name, part in result.items() if isinstance(part, dict) for key, value in part.items()
    }
    return flat | {name: value for name, value in result.items() if not isinstance(value, dict)}
