"""The LightningModule: what a training step is. It knows no architecture."""

from collections.abc import Callable
from typing import Any

from lightning import LightningModule
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from etude.data.batching import Batch
from etude.model.chunks import sum_cost
from etude.tasks.perplexity import perplexity
from etude.trained.checkpoint import model_weights
from etude.trained.weights import load_weights
from etude.training.checkpoints import count_batches
from etude.training.processes import all_gather_floats
from etude.training.randomness import reseed
from etude.training.schedule import check_rate


class TrainingModule(LightningModule):
    """Trains a model that maps (source, source_mask, target_in) to logits (B, T, V).

    Args:
        model: any such module.
        loss: sums over the real tokens of (logits, targets), of a whole batch or of some of its sentences.
        nll: the same without smoothing, for perplexity.
        optimizer: makes an optimizer of named parameters.
        scheduler: makes what sets the optimizer's learning rate, an update at a time.
        seed: of dropout, together with the step and the micro-batch.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        loss: Callable[[Tensor, Tensor], Tensor],
        nll: Callable[[Tensor, Tensor], Tensor],
        optimizer: Callable[..., Optimizer],
        scheduler: Callable[[Optimizer], LRScheduler],
        seed: int,
    ) -> None:
        super().__init__()
        self.model = model
        self.loss, self.nll = loss, nll
        self.make_optimizer, self.make_scheduler = optimizer, scheduler
        self.seed = seed
        self.learning_rate = 0.0  # of the last update
        self.tokens = 0  # real target tokens trained on so far, in all processes
        self.nll_sum: Tensor | float = 0.0  # of the tokens of this process, smoothed, since the last row of metrics
        self._nats, self._counted = list[Tensor](), 0

    def forward(self, batch: Batch) -> Tensor:
        """Logits (B, T, V) of a batch."""
        return self.model(batch.source, batch.source_mask, batch.target_in)

    def sum_nats(self, loss: Callable[[Tensor, Tensor], Tensor], batch: Batch) -> Tensor:
        """The loss of a batch, whose logits need not be there all at once."""
        return sum_cost(
            self.model,
            batch.source,
            batch.source_mask,
            batch.target_in,
            lambda logits, rows: loss(logits, batch.target_out[rows]),
        )

    def on_train_start(self) -> None:
        """Let the gradients of a fused optimizer be clipped: Lightning clips only what it has unscaled itself."""
        for optimizer in self.trainer.optimizers if self.trainer.gradient_clip_val else []:
            optimizer._step_supports_amp_scaling = False  # type: ignore[attr-defined]

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """What dropout draws depends on nothing but the seed, the step and the micro-batch."""
        reseed(self.seed, self.global_step, batch.micro_batch)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Compute the mean loss of a target token of the whole step, in nats; this may be one micro-batch of it.

        Lightning and DDP take the mean over micro batches and processes, where the sum is due; hence the factor.
        """
        micro_batches = self.trainer.accumulate_grad_batches
        if batch.micro_batch % micro_batches == 0:
            self.tokens += batch.step_tokens
        nats = self.sum_nats(self.loss, batch)
        self.nll_sum = self.nll_sum + nats.detach()
        return nats / batch.step_tokens * (micro_batches * self.trainer.world_size)

    def on_validation_epoch_start(self) -> None:
        """A fresh count."""
        self._nats, self._counted = [], 0

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Add up the unsmoothed negative log-likelihood."""
        self._nats.append(self.sum_nats(self.nll, batch))  # asked for its value at the end: a GPU need not wait
        self._counted += batch.target_tokens

    def on_validation_epoch_end(self) -> None:
        """Log what callbacks may monitor: `val_loss`, nats a subword, unsmoothed, and `val_perplexity`."""
        found = {"val_loss": self.validation_loss, "val_perplexity": self.validation_perplexity}
        self.log_dict(found, logger=False)  # the loggers get the rows of metrics.csv

    @property
    def validation_loss(self) -> float:
        """Unsmoothed nats a subword in the last validation."""
        return self._validation_nats / self._counted

    @property
    def validation_perplexity(self) -> float:
        """Of a subword, in the last validation."""
        return perplexity(self._validation_nats, self._counted)

    @property
    def _validation_nats(self) -> float:
        return sum(map(float, self._nats))

    def configure_optimizers(self) -> Any:
        """The scheduler takes a step an update."""
        optimizer = self.make_optimizer(self.model.named_parameters())
        scheduler = self.make_scheduler(optimizer)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Note the rate that the update is made with."""
        self.learning_rate = float(optimizer.param_groups[0]["lr"])
        check_rate(self.learning_rate, self.global_step + 1)

    def step_completed_by(self, batch: Batch) -> bool:
        """Whether the optimizer moves after this micro-batch: it is the last of this process's share."""
        return (batch.micro_batch + 1) % self.trainer.accumulate_grad_batches == 0

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The counts travel with the weights; each process has nats of its own."""
        checkpoint["tokens"], checkpoint["ended"] = self.tokens, self.trainer.should_stop
        checkpoint["nll_sum"] = all_gather_floats(self.nll_sum, self.device)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """And come back with them, to however many processes there are now."""
        load_weights(self.model, model_weights(checkpoint))  # as Lightning will, and with a sentence where it cannot
        self.tokens = checkpoint["tokens"]
        nats = checkpoint["nll_sum"]
        if len(nats) != self.trainer.world_size:
            nats = [sum(nats)] + [0.0] * (self.trainer.world_size - 1)
        self.nll_sum = nats[self.global_rank]
        for state in checkpoint.get("callbacks", {}).values():
            if isinstance(state, dict):
                state.pop("dirpath", None)  # the run may have been moved, which to Lightning would be another one
        count_batches(checkpoint, checkpoint["global_step"] * self.trainer.accumulate_grad_batches)
