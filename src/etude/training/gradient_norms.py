"""How long the gradient is, part by part."""

from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import grad_norm
from torch.optim import Optimizer


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
            norms = {name: float(norm) for name, norm in grad_norm(pl_module, norm_type=2).items()}
            for logger in trainer.loggers:
                logger.log_metrics(norms, step)
