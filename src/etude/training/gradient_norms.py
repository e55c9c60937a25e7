"""How long the gradient is, part by part."""

from math import hypot

from lightning import Callback, LightningModule, Trainer
from torch.optim import Optimizer

from etude.training.processes import whole


class GradientNorms(Callback):
    """Hands the gradient's 2-norm before clipping, of every parameter and in all, to the loggers.

    Args:
        every: updates between two measurements.
    """

    def __init__(self, *, every: int) -> None:
        self.every = every

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        """Measure before an update."""
        step = trainer.global_step + 1
        if step % self.every == 0:
            gradients = {name: weight.grad for name, weight in pl_module.named_parameters() if weight.grad is not None}
            norms = {f"grad_2.0_norm/{name}": float(whole(gradient.norm())) for name, gradient in gradients.items()}
            for logger in trainer.loggers:
                logger.log_metrics(norms | {"grad_2.0_norm_total": hypot(*norms.values())}, step)
