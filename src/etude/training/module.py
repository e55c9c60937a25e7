"""The LightningModule: what a training step is. It knows no architecture."""

from collections.abc import Callable
from typing import Any

from lightning import LightningModule
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from etude.data.batching import Batch
from etude.tasks.perplexity import perplexity
from etude.training.checkpoints import count_batches
from etude.training.processes import gathered
from etude.training.randomness import reseed


class TranslationModule(LightningModule):
    """Trains a model that maps (source, source_mask, target_in) to logits (B, T, V).

    Args:
        model: any such module.
        loss: sums over the real tokens of (logits, targets).
        likelihood: the same without smoothing, for perplexity.
        optimizer: makes an optimizer of parameters.
        scheduler: makes what sets the optimizer's learning rate, an update at a time.
        seed: of dropout, together with the step and the piece of its batch.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        loss: Callable[[Tensor, Tensor], Tensor],
        likelihood: Callable[[Tensor, Tensor], Tensor],
        optimizer: Callable[..., Optimizer],
        scheduler: Callable[[Optimizer], LRScheduler],
        seed: int,
    ) -> None:
        super().__init__()
        self.model = model
        self.loss, self.likelihood = loss, likelihood
        self.make_optimizer, self.make_scheduler = optimizer, scheduler
        self.seed = seed
        self.learning_rate = 0.0  # of the last update
        self.tokens = 0  # real target tokens trained on so far, in all processes
        self.training_nats: Tensor | float = (
            0.0  # the loss summed over the tokens of this process, since a row was made of it
        )
        self._nats, self._counted = 0.0, 0

    def forward(self, batch: Batch) -> Tensor:
        """Logits (B, T, V) of a batch."""
        return self.model(batch.source, batch.source_mask, batch.target_in)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """What dropout draws depends on nothing but the seed, the step and the piece of its batch."""
        reseed(self.seed, self.global_step, batch.piece)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The mean loss of a target token, in nats: over the batch of the whole step, of which this may be a piece.

        Lightning and DDP take the mean over micro batches and processes, where the sum is due; hence the factor.
        """
        micro_batches = self.trainer.accumulate_grad_batches
        if batch.piece % micro_batches == 0:
            self.tokens += batch.step_tokens
        nats = self.loss(self(batch), batch.target_out)
        self.training_nats = self.training_nats + nats.detach()
        return nats / batch.step_tokens * (micro_batches * self.trainer.world_size)

    def on_validation_epoch_start(self) -> None:
        """A fresh count."""
        self._nats, self._counted = 0.0, 0

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Add up the unsmoothed negative log-likelihood."""
        self._nats += float(self.likelihood(self(batch), batch.target_out))
        self._counted += batch.target_tokens

    @property
    def validation_loss(self) -> float:
        """Unsmoothed nats a word piece in the last validation."""
        return self._nats / self._counted

    @property
    def validation_perplexity(self) -> float:
        """Of a word piece, in the last validation."""
        return perplexity(self._nats, self._counted)

    def configure_optimizers(self) -> Any:
        """The scheduler takes a step an update."""
        optimizer = self.make_optimizer(self.parameters())
        scheduler = self.make_scheduler(optimizer)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Note the rate that the update is made with."""
        self.learning_rate = float(optimizer.param_groups[0]["lr"])

    def step_completed_by(self, batch: Batch) -> bool:
        """Whether the optimizer moves after this piece: it is the last of this process's share."""
        return (batch.piece + 1) % self.trainer.accumulate_grad_batches == 0

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The counts travel with the weights; each process has nats of its own."""
        checkpoint["tokens"] = self.tokens
        checkpoint["training_nats"] = gathered(self.training_nats, self.device)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """And come back with them, to however many processes there are now."""
        self.tokens = checkpoint["tokens"]
        nats = checkpoint["training_nats"]
        if len(nats) != self.trainer.world_size:
            nats = [sum(nats)] + [0.0] * (self.trainer.world_size - 1)
        self.training_nats = nats[self.global_rank]
        count_batches(checkpoint, checkpoint["global_step"] * self.trainer.accumulate_grad_batches)
