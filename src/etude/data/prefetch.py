"""Copy batches to a GPU ahead of the training step that takes them."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from etude.data.batch import Batch


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
            if isinstance(tensor, Tensor):
                tensor.record_stream(computing)  # or its memory would be free for the next copy before it has been read
        return batch
