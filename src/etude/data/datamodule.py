"""The prepared text as a `LightningDataModule`."""

from collections.abc import Callable, Iterable, Iterator

import torch
from lightning import LightningDataModule

from etude.data.batching import Batch, BatchStream, Examples, evaluation_batches
from etude.data.store import Split, TokenStore


class TextDataModule(LightningDataModule):
    """Endless training batches, and one pass over the validation text.

    The loaders are plain iterables of batches: making a batch is cheaper than receiving it from a worker process, and a
    `DataLoader` would draw from torch's global generator, whose state must not depend on how often a run was resumed.

    Args:
        store: the prepared text
        source_tokens, target_tokens, length_noise, seed, limit: see `BatchStream`
        start_step: the first training step; set it before a run is resumed
        examples: wraps a split for the task
    """

    def __init__(
        self,
        store: TokenStore,
        *,
        source_tokens: int,
        target_tokens: int,
        length_noise: float,
        seed: int,
        start_step: int,
        limit: int | None = None,
        examples: Callable[[Split], Examples] = lambda split: split,
    ) -> None:
        super().__init__()
        self.store = store
        self.source_tokens, self.target_tokens = source_tokens, target_tokens
        self.length_noise, self.seed = length_noise, seed
        self.start_step, self.limit, self.examples = start_step, limit, examples

    def train_dataloader(self) -> "BatchStream | Prefetched":
        """Return the training batches of this process, from `start_step` on; with a GPU, on it and one ahead."""
        batches = BatchStream(
            self.examples(self.store.split("train")),
            source_tokens=self.source_tokens,
            target_tokens=self.target_tokens,
            length_noise=self.length_noise,
            seed=self.seed,
            start=self.start_step,
            limit=self.limit,
            rank=self.trainer.global_rank if self.trainer else 0,
            world_size=self.trainer.world_size if self.trainer else 1,
            micro_batches=self.trainer.accumulate_grad_batches if self.trainer else 1,
        )
        device = self.trainer.strategy.root_device if self.trainer else torch.device("cpu")
        return Prefetched(batches, device) if device.type == "cuda" else batches

    def val_dataloader(self) -> "BatchList":
        """Return the batches of the validation text, from short to long."""
        split = self.examples(self.store.split("valid"))
        return BatchList(evaluation_batches(split, source_tokens=self.source_tokens, target_tokens=self.target_tokens))


class BatchList:
    """A list of batches that every process iterates in full, so that a mean over them needs no communication.

    Lightning would treat a bare list as several loaders, and would split a `DataLoader` among the processes, repeating
    batches to make the shares equal.
    """

    def __init__(self, batches: list[Batch]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.batches)


class Prefetched:
    """Iterates over batches on a GPU: while a step computes on one, the next is copied, in a CUDA stream of its own.

    Args:
        batches: batches on the CPU.
        device: the GPU.
    """

    def __init__(self, batches: Iterable[Batch], device: torch.device) -> None:
        self.batches, self.device = batches, device

    def __iter__(self) -> Iterator[Batch]:
        stream = torch.cuda.Stream(self.device)
        ahead = None
        for batch in self.batches:
            with torch.cuda.stream(stream):
                copied = batch.to(self.device), stream.record_event()
            if ahead:
                yield self._wait(*ahead)
            ahead = copied
        if ahead:
            yield self._wait(*ahead)

    def _wait(self, batch: Batch, copied: torch.cuda.Event) -> Batch:
        """Let the stream that computes wait for the copy; the CPU does not wait."""
        computing = torch.cuda.current_stream(self.device)
        computing.wait_event(copied)
        for tensor in vars(batch).values():
            if isinstance(tensor, torch.Tensor):
                tensor.record_stream(computing)  # or its memory would be free for the next copy before it has been read
        return batch
