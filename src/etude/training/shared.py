"""Reuse the training, or the result, of another run with the same training."""

import logging
from typing import Any

from lightning.pytorch.loggers import Logger

from etude.runs.run_dir import RunDir
from etude.runs.shared_training import result_of, take_over
from etude.tasks.metrics import with_missing_metrics
from etude.trained.weights import final_checkpoints
from etude.training.build import make_parts
from etude.training.loggers import finish, record

log = logging.getLogger(__name__)


def take_over_training(run: RunDir, *, result: bool) -> dict[str, Any] | None:
    """Take over the weights of another run with the same training, unless this is a fast dev run, which tests training.

    Args:
        run: a frozen run, on whose training no other process works.
        result: whether the result of the same run in another study is taken over too.

    Returns:
        That result, which is not written yet; None if there is none.
    """
    config = run.config()
    if config["trainer"]["fast_dev_run"] or not (other := take_over(run, config, result=result)):
        return None
    log.info("what decides the weights is the same as of %s, whose training is taken over", other.path)
    return result_of(other, run) if result and other.finished and other.id == run.id else None


def record_shared(run: RunDir, result: dict[str, Any]) -> dict[str, Any]:
    """Log and write a result that was taken over, after computing the metrics that it lacks."""
    config = run.config()
    loggers, done = make_loggers(run, config), False
    try:
        result = with_missing_metrics(run, config, result)
        record(loggers, run, result, final_checkpoints(run, config))
        done = True
    finally:
        finish(loggers, exit_code=0 if done else 1)
    run.write_result(result)  # last: a run that is killed before its loggers have the result is recorded again
    return result


def make_loggers(run: RunDir, config: dict[str, Any]) -> list[Logger]:
    """Make the Lightning loggers of a config."""
    return make_parts("logger", config["logger"], Logger, run=run, config=config, save_dir=run.path)
