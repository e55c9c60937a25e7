"""Log the norm of the gradient, in total and for each parameter."""

from math import hypot

from lightning import Callback, LightningModule, Trainer
from torch.optim import Optimizer


class GradientNorms(Callback):
    """Logs the 2-norm of the gradient before clipping, for every parameter and in total.

    Args:
        every: number of steps between two measurements.

    Raises:
        ValueError: `every` is less than one.
    """

    def __init__(self, *, every: int) -> None:
        if every < 1:
            raise ValueError(f"the gradient is measured every so many steps, at least 1, not {every}")
        self.every = every

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        """Log the norms every so many steps."""
        step = trainer.global_step + 1
        if step % self.every == 0:
            gradients = {name: weight.grad for name, weight in pl_module.named_parameters() if weight.grad is not None}
            norms = {f"grad_2.0_norm/{name}": float(gradient.norm()) for name, gradient in gradients.items()}
            for logger in trainer.loggers:
                logger.log_metrics(norms | {"grad_2.0_norm_total": hypot(*norms.values())}, step)
