"""The learning rate as a function of the step (section 5.3)."""


class Noam:
    """Equation (3): `factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)`; the first update is step 1."""

    def __init__(self, *, d_model: int, warmup_steps: int, factor: float) -> None:
        if warmup_steps < 1:
            raise ValueError(f"schedule.warmup_steps must be at least 1, not {warmup_steps}")
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.factor = factor

    def __call__(self, step: int) -> float:
        """The learning rate of update `step` = 1, 2, ..."""
        return self.factor * self.d_model**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5)
