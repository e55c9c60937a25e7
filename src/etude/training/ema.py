"""An exponential moving average of the weights, as Lightning keeps it."""

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import EMAWeightAveraging


class EMA(EMAWeightAveraging):
    """Validates with the average, and ends the run with it: checkpoints hold it in the place of the weights.

    Args:
        decay: what is left of the average in an update.
    """

    def __init__(self, *, decay: float) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"callbacks.ema.decay must lie in [0, 1), not {decay}")
        super().__init__(decay=decay)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Share the buffers, which are no weights: a table of positions grows with the sentences that come."""
        super().setup(trainer, pl_module, stage)
        if self._average_model is not None:
            for average, own in zip(self._average_model.module.modules(), pl_module.modules(), strict=True):
                average._buffers = own._buffers
