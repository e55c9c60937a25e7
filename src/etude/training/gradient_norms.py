"""Log the norm of the gradient, in total and for each parameter."""

from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import grad_norm
from torch.optim import Optimizer


class GradientNorms(Callback):
    """Logs the 2-norm of the gradient before clipping, for every parameter and in total.

    Args:
        every: number of steps between two measurements.
    """

    def __init__(self, *, every: int) -> None:
        self.every = every

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        """Log the norms every so many steps."""
        step = trainer.global_step + 1
        if step % self.every == 0:
            norms = {name: float(norm) for name, norm in grad_norm(pl_module, norm_type=2).items()}
            for logger in trainer.loggers:
                logger.log_metrics(norms, step)
