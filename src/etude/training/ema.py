"""An exponential moving average of the weights, on top of Lightning's."""

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import EMAWeightAveraging

from etude.training.lightning_internals import averaged_module


class EMA(EMAWeightAveraging):
    """Averages the weights; validation, checkpoints and the final model use the average instead of the weights.

    Args:
        decay: the factor of the old average in an update.

    Raises:
        ValueError: `decay` is outside [0, 1).
    """

    def __init__(self, *, decay: float) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"callbacks.ema.decay must lie in [0, 1), not {decay}")
        super().__init__(decay=decay, use_buffers=False)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Set up, and share the model's buffers, which are not averaged: a table of positions may grow in training.

        Averaged with itself, a shared buffer would drift by rounding, and one of integers lose its fractions.
        """
        super().setup(trainer, pl_module, stage)
        if (averaged := averaged_module(self)) is not None:
            for average, own in zip(averaged.modules(), pl_module.modules(), strict=True):
                average._buffers = own._buffers

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the average, for the module scores translations with it after this hook."""

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Go on with the weights, before a checkpoint is saved."""
        super().on_validation_epoch_end(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Leave the weights as they are, for the last checkpoint holds these beside their average."""
