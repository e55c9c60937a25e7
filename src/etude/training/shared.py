"""Reuse the training, or the result, of another run with the same training."""

import logging
from typing import Any

from lightning.pytorch.loggers import Logger

from etude.runs.run_dir import RunDir
from etude.runs.shared_training import take_over
from etude.tasks.metrics import add_missing_metrics
from etude.trained.weights import final_checkpoints
from etude.training.build import make_parts
from etude.training.loggers import finish, record

log = logging.getLogger(__name__)


def take_over_training(run: RunDir, *, result: bool) -> None:
    """Take over the weights of another run with the same training, unless this is a fast dev run, which tests training.

    Args:
        run: a frozen run, on whose training no other process works.
        result: whether the result of the same run in another study is taken over too.
    """
    config = run.config()
    if not config["trainer"]["fast_dev_run"] and (other := take_over(run, config, result=result)):
        log.info("what decides the weights is the same as of %s, whose training is taken over", other.path)


def record_shared(run: RunDir) -> dict[str, Any]:
    """Log the result of a run that was taken over, after computing the metrics that it lacks."""
    config = run.config()
    loggers = make_loggers(run, config)
    result = add_missing_metrics(run, config)
    record(loggers, run, result, final_checkpoints(run, config))
    finish(loggers, exit_code=0)
    return result


def make_loggers(run: RunDir, config: dict[str, Any]) -> list[Logger]:
    """Make the Lightning loggers of a config."""
    return make_parts("logger", config["logger"], Logger, run=run, config=config, save_dir=run.path)
