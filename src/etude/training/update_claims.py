"""What optimizers and schedules promise, so that a run that is resumed ends with the same bits."""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from etude.tasks.claims import BrokenClaim
from etude.training.optimizer import Named
from etude.training.readable import check_readable

_SIZE = 4  # the largest of a small weight
_STEPS = 1000  # of a schedule that are asked for twice


def check_same_rates(schedule: Callable[[int], float], steps: int) -> None:
    """Check that a schedule gives the same rate when it is asked for a step again.

    Raises:
        BrokenClaim: it does not, and a resumed run would be another one.
    """
    asked = range(1, 1 + min(steps, _STEPS))
    first, again = ([schedule(step) for step in asked] for _ in range(2))
    for step, rates in enumerate(zip(first, again, strict=True), start=1):
        if rates[0] != rates[1]:
            raise BrokenClaim(
                f"the rate of step {step} is {rates[0]:.3g}, and {rates[1]:.3g} when it is asked for again; it must "
                "be a function of the step, or a resumed run is another one"
            )


def calls_closure(optimizer: Optimizer) -> bool:
    """Return whether the step of an optimizer calls its closure."""

    def closure() -> float:
        raise RuntimeError("the step is ended before it changes anything")

    try:
        optimizer.step(closure)
    except Exception:  # this one; or the optimizer's own, as there are no gradients, which training will tell
        return True
    return False


def check_resumes(make: Callable[[Sequence[Named]], Optimizer], parameters: Iterable[Named]) -> None:
    """Check that an optimizer goes on from a checkpoint as it would have without.

    Args:
        make: makes it for named parameters.
        parameters: smaller ones of the same names and dimensions are updated; what fails with them is not told.

    Raises:
        BrokenClaim: no checkpoint can hold its state, or its next update is another one.
    """
    weights = {name: nn.Parameter(torch.randn([min(n, _SIZE) for n in one.shape])) for name, one in parameters}
    try:
        optimizer = make([*weights.items()])
        for step in (1, 2):
            _update(optimizer, weights.values(), step)
        check_readable(optimizer.state_dict(), "its state")
        copies = {name: nn.Parameter(weight.detach().clone()) for name, weight in weights.items()}
        resumed = make([*copies.items()])
        resumed.load_state_dict(deepcopy(optimizer.state_dict()))
        _update(optimizer, weights.values(), 3)
        _update(resumed, copies.values(), 3)
    except BrokenClaim:
        raise
    except Exception:  # it may need larger weights, or others
        return
    if any(not torch.equal(weight.nan_to_num(), copies[name].nan_to_num()) for name, weight in weights.items()):
        raise BrokenClaim(
            "after a checkpoint its next update is another one; what it remembers must stand in `self.state` and "
            "`self.param_groups`, which a checkpoint holds"
        )


def _update(optimizer: Optimizer, weights: Iterable[Tensor], step: int) -> None:
    def closure() -> float:
        generator = torch.Generator().manual_seed(step)
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=generator)
        return 1.0 / step

    torch.manual_seed(step)
    optimizer.step(closure)
