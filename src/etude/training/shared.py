"""A run whose training, or whose result, another run has."""

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
    """Take over what another run of the same training has learned; a fast dev run is there to try it out.

    Args:
        run: frozen; nobody else works on its training.
        result: whether the result of the same run of another study is taken over too.
    """
    config = run.config()
    if not config["trainer"]["fast_dev_run"] and (other := take_over(run, config, result=result)):
        log.info("what decides the weights is the same as of %s, whose training is taken over", other.path)


def record_shared(run: RunDir) -> dict[str, Any]:
    """Tell the loggers of a run whose result was taken over, and score it by the metrics that it was not asked for."""
    config = run.config()
    loggers = make_loggers(run, config)
    result = add_missing_metrics(run, config)
    record(loggers, run, result, final_checkpoints(run, config))
    finish(loggers, exit_code=0)
    return result


def make_loggers(run: RunDir, config: dict[str, Any]) -> list[Logger]:
    """Lightning's loggers, as the config has them."""
    return make_parts("logger", config["logger"], Logger, run=run, config=config, save_dir=run.path)
