"""The learning rate as a function of the step (section 5.3)."""


class Noam:
    """Equation (3): `factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)`; the first update is step 1.

    Over the last `cooldown` of the steps the rate falls linearly to zero besides, which the paper's does not: a short
    training then ends where a longer one would settle, instead of wherever its last large steps left it.

    Args:
        d_model: D.
        warmup_steps: updates until the rate is highest.
        factor: on the paper's learning rate.
        max_steps: updates in all.
        cooldown: the share of them in which the rate falls, from 0 (as in the paper) to 1.

    Raises:
        ValueError: there is no warmup, or the cooldown is no share.
    """

    def __init__(self, *, d_model: int, warmup_steps: int, factor: float, max_steps: int, cooldown: float) -> None:
        if warmup_steps < 1:
            raise ValueError(f"schedule.warmup_steps must be at least 1, not {warmup_steps}")
        if not 0 <= cooldown <= 1:
            raise ValueError(f"schedule.cooldown must lie in [0, 1], not {cooldown}")
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.factor = factor
        self.max_steps = max_steps
        self.cooldown_steps = cooldown * max_steps

    def __call__(self, step: int) -> float:
        """The learning rate of update `step` = 1, 2, ..."""
        left = max(0, self.max_steps + 1 - step)  # updates, this one counted
        falling = left / self.cooldown_steps if left < self.cooldown_steps else 1.0
        return falling * self.factor * self.d_model**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5)
