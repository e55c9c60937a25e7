"""What runs will take, so that a sweep can begin with the longest."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

Cost = Callable[[Sequence[dict[str, Any]]], Sequence[float]]  # frozen configs to hours

logger = logging.getLogger(__name__)


def planned_hours(configs: Sequence[dict[str, Any]]) -> Sequence[float]:
    """Hours of each run by its plan, all on the same device: they are compared, not kept to.

    Where a run cannot be planned, all count alike.
    """
    from etude.inspect.plan.device import load_device  # these need torch
    from etude.inspect.plan.runs import plan_runs

    try:
        return [run.hours for run in plan_runs(configs, load_device("cpu"))]
    except Exception as error:  # whatever is wrong with a run, it will say itself
        logger.info("the runs start in the order given, for their plan cannot be made: %s", error or repr(error))
        return [0.0] * len(configs)
