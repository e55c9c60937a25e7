"""The learning rate as a function of the step (section 5.3), and torch schedulers made from it."""

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from etude.config.parts import make, try_out
from etude.errors import UserError


class Noam:
    """Equation (3): `factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)`; the first update is step 1.

    Over the last `cooldown` of the steps the rate is also multiplied by a factor that falls linearly to zero, which the
    paper does not do: a short training then settles as a longer one would, instead of ending after large steps.

    Args:
        d_model: D.
        warmup_steps: updates until the rate is highest.
        factor: multiplies the paper's learning rate.
        max_steps: updates in total.
        cooldown: the share of them with the falling factor, from 0 (as in the paper) to 1.

    Raises:
        ValueError: `warmup_steps` is below 1, or `cooldown` is outside [0, 1].
    """

    def __init__(self, *, d_model: int, warmup_steps: int, factor: float, max_steps: int, cooldown: float) -> None:
        _check(warmup_steps, cooldown=cooldown)
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.factor = factor
        self.max_steps = max_steps
        self.cooldown = cooldown

    def __call__(self, step: int) -> float:
        """Compute the learning rate of update `step` = 1, 2, ..."""
        falling = cooled_down(step, self.max_steps, self.cooldown)
        return falling * self.factor * self.d_model**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5)


class Constant:
    """A linear warmup to `peak`, then a constant rate; subclasses override `decay`.

    Args:
        peak: the highest learning rate.
        warmup_steps: updates until it is reached.

    Raises:
        ValueError: `warmup_steps` is below 1.
    """

    def __init__(self, *, peak: float, warmup_steps: int) -> None:
        _check(warmup_steps)
        self.peak, self.warmup_steps = peak, warmup_steps

    def __call__(self, step: int) -> float:
        """Compute the learning rate of update `step` = 1, 2, ..."""
        return self.peak * (step / self.warmup_steps if step < self.warmup_steps else self.decay(step))

    def decay(self, step: int) -> float:
        """Compute the rate as a share of the peak, at a step from `warmup_steps` on."""
        return 1.0


class InverseSquareRoot(Constant):
    """A linear warmup, then a rate that falls as step^-0.5: equation (3), parametrised by its peak."""

    def decay(self, step: int) -> float:
        """See `Constant.decay`."""
        return math.sqrt(self.warmup_steps / step)


class WarmupStableDecay(Constant):
    """A linear warmup, the peak, and a linear decay to zero over the last `cooldown` of the steps (Hu et al. 2024).

    Raises:
        ValueError: `warmup_steps` is below 1, or `cooldown` is outside [0, 1].
    """

    def __init__(self, *, peak: float, warmup_steps: int, max_steps: int, cooldown: float) -> None:
        super().__init__(peak=peak, warmup_steps=warmup_steps)
        _check(warmup_steps, cooldown=cooldown)
        self.max_steps, self.cooldown = max_steps, cooldown

    def __call__(self, step: int) -> float:
        """Compute the learning rate; a cooldown that begins in the warmup lowers it there, too."""
        return super().__call__(step) * cooled_down(step, self.max_steps, self.cooldown)


class Linear(Constant):
    """A linear warmup, then a linear decay to `final` times the peak at the last step.

    Raises:
        ValueError: `warmup_steps` is below 1, or `final` is outside [0, 1].
    """

    def __init__(self, *, peak: float, warmup_steps: int, max_steps: int, final: float) -> None:
        super().__init__(peak=peak, warmup_steps=warmup_steps)
        _check(warmup_steps, final=final)
        self.max_steps, self.final = max_steps, final

    def decay(self, step: int) -> float:
        """See `Constant.decay`."""
        done = min(1.0, (step - self.warmup_steps) / max(1, self.max_steps - self.warmup_steps))
        return self.final + (1 - self.final) * self.shape(done)

    def shape(self, done: float) -> float:
        """Map the `done` share of the decay to its height above `final`: 0 to 1, 1 to 0."""
        return 1 - done


class Cosine(Linear):
    """A linear warmup, then half a cosine to `final` times the peak at the last step (Loshchilov and Hutter 2017)."""

    def shape(self, done: float) -> float:
        """See `Linear.shape`."""
        return (1 + math.cos(math.pi * done)) / 2


def cooled_down(step: int, max_steps: int, cooldown: float) -> float:
    """Return 1 before the last `cooldown` of `max_steps`, then a linear decay that reaches zero after the last step."""
    left, falling = max(0, max_steps + 1 - step), cooldown * max_steps
    return left / falling if left < falling else 1.0


def as_scheduler(rate: Callable[[int], float], max_steps: int) -> Callable[[Optimizer], LambdaLR]:
    """Return a function that makes a torch scheduler from `rate`, which maps a step to the learning rate itself.

    After the last of `max_steps` the scheduler asks for one more, for which a schedule need have no rate.

    The returned function raises a UserError if the optimizer has another learning rate than 1, which would multiply
    that of `rate`.
    """

    def make_scheduler(optimizer: Optimizer) -> LambdaLR:
        if (own := optimizer.defaults.get("lr", 1)) != 1:
            raise UserError(
                f"optimizer: {type(optimizer).__name__} is made with lr={own}, which would multiply the learning rate "
                "that the schedule gives: say optimizer.lr=1, and the rate in the schedule"
            )
        return LambdaLR(optimizer, after)

    def after(update: int) -> float:
        try:
            return rate(update + 1)
        except Exception:
            if update < max_steps:
                raise
            return rate(update)  # no update has this rate: the scheduler asks for one more than there are

    return make_scheduler


def learning_rate(config: Mapping[str, Any]) -> Callable[[int], float]:
    """Return the learning rate of a config as a function of the update 1, 2, ..., as training sets it.

    Raises:
        UserError: the schedule does not accept its values.
    """
    schedule = config["schedule"]
    if not schedule.get("_partial_"):
        return make(schedule)
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=config["optimizer"]["lr"])
    scheduler, rates = make(schedule, optimizer), []
    for _ in range(config["budget"]["max_steps"]):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return lambda step: rates[step - 1]


def check_schedule(config: Mapping[str, Any]) -> None:
    """Check before training that the schedule of a config accepts its values and never goes below 0.

    Raises:
        UserError: it does not accept them, or goes below 0.
    """
    schedule = config["schedule"]
    if schedule.get("_partial_"):  # a torch scheduler, whose rates are checked during training
        try_out(schedule, None)
        return
    rate = make(schedule)
    if not callable(rate):
        raise UserError(f"schedule: {schedule['_target_']} must be called with a step, and give its learning rate")
    for step in range(1, config["budget"]["max_steps"] + 1):
        try:
            found = rate(step)
        except Exception as error:  # it may be anybody's
            why = f"fails when it is called with step {step}: {type(error).__name__}: {error}"
            raise UserError(f"schedule: {schedule['_target_']} {why}") from error
        check_rate(found, step)


def check_rate(rate: float, step: int) -> None:
    """Check the learning rate of an update.

    Raises:
        UserError: it is no number, below 0 or NaN.
    """
    if not isinstance(rate, Real):
        raise UserError(f"schedule: the learning rate of step {step} is {rate!r}, not a number: correct the schedule")
    if not rate >= 0:
        raise UserError(
            f"schedule: the learning rate of step {step} is {rate:.6g}, and none may be below 0: correct the schedule"
        )


def _check(warmup_steps: int, **shares: float) -> None:
    if warmup_steps < 1:
        raise ValueError(f"schedule.warmup_steps must be at least 1, not {warmup_steps}")
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"schedule.{name} must lie in [0, 1], not {share}")
