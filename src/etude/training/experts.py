"""What mixtures of experts need of training: the cost of balancing, their load, a warning of idle experts."""

import logging
from collections.abc import Mapping

import torch
from torch import Tensor, distributed

from etude.model.experts import MixtureOfExperts

log = logging.getLogger(__name__)

Mixtures = Mapping[str, MixtureOfExperts]


def balancing_cost(mixtures: Mixtures) -> Tensor | float:
    """Sum what the mixtures add to the loss of each token since they were last asked."""
    costs = [cost for mixture in mixtures.values() if (cost := mixture.take_cost()) is not None]
    return torch.stack(costs).sum() if costs else 0.0


def finish_step(mixtures: Mixtures) -> None:
    """Tell each mixture the load of the update by all processes."""
    for mixture in mixtures.values():
        load = mixture.load.clone()
        if distributed.is_initialized():
            distributed.all_reduce(load)
        mixture.after_step(load)


def report_load(mixtures: Mixtures) -> None:
    """Log the load of each mixture since the last report, as a warning if an expert was given no position at all."""
    for name, mixture in mixtures.items():
        load = mixture.unreported.tolist()
        mixture.unreported.zero_()
        if not (total := sum(load)):
            continue
        shares = ", ".join(f"{one / total:.3f}" for one in load)
        if idle := [n for n, one in enumerate(load) if not one]:
            log.warning(
                "%s: no position reached the experts %s since the last validation (load: %s): "
                "choose a model/feedforward/balance, or raise its coefficient or rate",
                name,
                ", ".join(map(str, idle)),
                shares,
            )
        else:
            log.info("%s: load of the experts: %s", name, shares)
