"""The LightningModule: the training and validation step of any model."""

from collections.abc import Callable
from typing import Any

from lightning import LightningModule
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from etude.data.batching import Batch
from etude.model.chunks import sum_cost
from etude.model.experts import mixtures
from etude.tasks.perplexity import perplexity
from etude.trained.checkpoint import model_weights
from etude.trained.weights import load_weights
from etude.training.checkpoints import count_batches
from etude.training.experts import balancing_cost, finish_step, report_load
from etude.training.processes import all_gather_floats
from etude.training.randomness import reseed
from etude.training.schedule import check_rate


class TrainingModule(LightningModule):
    """Trains a model that maps (source, source_mask, target_in) to logits (B, T, V).

    Args:
        model: such a module.
        loss: maps logits and targets, of a batch or of some of its sentences, to a sum over the real tokens.
        nll: the same without label smoothing, for perplexity.
        optimizer: maps named parameters to an optimizer.
        scheduler: maps the optimizer to a scheduler, which takes a step per update.
        seed: seeds dropout, together with the step and the micro-batch.
        score: computes further scores of the model after each validation, by name.
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
        score: Callable[[nn.Module], dict[str, float]] = lambda model: {},
    ) -> None:
        super().__init__()
        self.model = model
        self.mixtures = mixtures(model)
        self.loss, self.nll = loss, nll
        self.make_optimizer, self.make_scheduler = optimizer, scheduler
        self.seed, self.score = seed, score
        self.learning_rate = 0.0  # the one used in the last update
        self.tokens = 0  # real target tokens seen in training so far, by all processes
        self.nll_sum: Tensor | float = 0.0  # smoothed loss of this process's tokens since the last row of metrics
        self.validation_scores: dict[str, float] = {}  # further ones of the last validation
        self._nats, self._counted = list[Tensor](), 0

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits (B, T, V) of a batch."""
        return self.model(batch.source, batch.source_mask, batch.target_in)

    def sum_nats(self, loss: Callable[[Tensor, Tensor], Tensor], batch: Batch) -> Tensor:
        """Sum `loss` over a batch, without holding all its logits at once."""
        return sum_cost(
            self.model,
            batch.source,
            batch.source_mask,
            batch.target_in,
            lambda logits, rows: loss(logits, batch.target_out[rows]),
        )

    def on_train_start(self) -> None:
        """Let Lightning unscale gradients before a fused optimizer, which could do it itself, takes them.

        So they can be clipped, and callbacks see them as they are. The scale is a power of two: no update changes.
        """
        for optimizer in self.trainer.optimizers:
            optimizer._step_supports_amp_scaling = False  # type: ignore[attr-defined]

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Seed dropout, so that its masks depend only on the seed, the step and the micro-batch; drop old gradients.

        Lightning drops them after the forward pass, whose tensors then take other memory, 2 % slower on a CPU.
        """
        reseed(self.seed, self.global_step, batch.micro_batch)
        if batch.micro_batch % self.trainer.accumulate_grad_batches == 0:
            self.optimizers(use_pl_optimizer=False).zero_grad()  # type: ignore[union-attr]

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Optimizer) -> None:
        """Do nothing: the gradients have been dropped before the forward pass."""

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return this micro-batch's part of the loss per target token of the whole step, in nats.

        The factor undoes the mean that Lightning and DDP take over micro batches and processes: the parts must add up.
        """
        micro_batches = self.trainer.accumulate_grad_batches
        if batch.micro_batch % micro_batches == 0:
            self.tokens += batch.step_tokens
        nats = self.sum_nats(self.loss, batch)
        self.nll_sum = self.nll_sum + nats.detach()
        nats = nats + batch.target_tokens * balancing_cost(self.mixtures)
        return nats / batch.step_tokens * (micro_batches * self.trainer.world_size)

    def on_validation_epoch_start(self) -> None:
        """Reset the sums; drop the gradients, as CUDA graphs may use their memory for the validation."""
        self._nats, self._counted = [], 0
        self.zero_grad()
        report_load(self.mixtures)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Add the unsmoothed negative log-likelihood of a batch."""
        self._nats.append(self.sum_nats(self.nll, batch))  # read only at the end, so that a GPU need not wait
        self._counted += batch.target_tokens

    def on_validation_epoch_end(self) -> None:
        """Log what callbacks may monitor: `val_loss` (unsmoothed nats per subword), `val_perplexity`, and scores."""
        self.validation_scores = self.score(self.model)
        found = {"val_loss": self.validation_loss, "val_perplexity": self.validation_perplexity}
        found |= {f"val_{name}": value for name, value in self.validation_scores.items()}
        self.log_dict(found, logger=False)  # loggers get the rows of metrics.csv instead

    @property
    def validation_loss(self) -> float:
        """Unsmoothed nats per subword in the last validation."""
        return self._validation_nats / self._counted

    @property
    def validation_perplexity(self) -> float:
        """Perplexity per subword in the last validation."""
        return perplexity(self._validation_nats, self._counted)

    @property
    def _validation_nats(self) -> float:
        return sum(map(float, self._nats))

    def configure_optimizers(self) -> Any:
        """Make the optimizer and its scheduler, which takes a step per update."""
        optimizer = self.make_optimizer(self.model.named_parameters())
        scheduler = self.make_scheduler(optimizer)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Store the learning rate of the update, and check it."""
        self.learning_rate = float(optimizer.param_groups[0]["lr"])
        check_rate(self.learning_rate, self.global_step + 1)
        finish_step(self.mixtures)

    def step_completed_by(self, batch: Batch) -> bool:
        """Return whether the optimizer takes its step after this micro-batch, the last one of this process."""
        return (batch.micro_batch + 1) % self.trainer.accumulate_grad_batches == 0

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the counts to the checkpoint; the loss sum is kept per process."""
        checkpoint["tokens"], checkpoint["ended"] = self.tokens, self.trainer.should_stop
        checkpoint["nll_sum"] = all_gather_floats(self.nll_sum, self.device)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the counts, for any number of processes."""
        load_weights(self.model, model_weights(checkpoint))  # before Lightning does, for its clear error
        self.tokens = checkpoint["tokens"]
        nats = checkpoint["nll_sum"]
        if len(nats) != self.trainer.world_size:
            nats = [sum(nats)] + [0.0] * (self.trainer.world_size - 1)
        self.nll_sum = nats[self.global_rank]
        for state in checkpoint.get("callbacks", {}).values():
            if isinstance(state, dict):
                state.pop("dirpath", None)  # the run may have been moved, and Lightning would ignore the state
        batches = checkpoint["global_step"] * self.trainer.accumulate_grad_batches
        count_batches(checkpoint, batches, val_every=self.trainer.val_check_interval)
