"""Training on the same ids, whoever trains."""

import time
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from etude.data.batch import Batch, make_batch
from etude.data.tokenizer import PAD
from peers.torch_nn import VOCABULARY

TOKENS = 2000  # of the target, in a batch, a few of them padding
LENGTHS = (8, 17, 30)  # tokens of a line, one batch each


class Trained(ABC):
    """A round is a step, forward to update, on each batch; its rate is target tokens a second, without padding."""

    optimizer: torch.optim.Optimizer

    def __init__(self, bf16: bool) -> None:
        torch.manual_seed(1)
        self.bf16 = bf16
        self.data = batches()
        self.tokens = sum(batch.target_tokens for batch in self.data)

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """The mean loss of a target token."""

    def round(self) -> float:
        started = time.perf_counter()
        for batch in self.data:
            with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
                loss = self.loss(batch)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return self.tokens / (time.perf_counter() - started)


def batches() -> list[Batch]:
    """A batch of random ids for each length."""
    generator = torch.Generator().manual_seed(1)
    made = []
    for length in LENGTHS:
        rows = TOKENS // length
        source, target = torch.randint(4, VOCABULARY, (2, rows, length), generator=generator)
        mask = torch.arange(length) < torch.randint(length - 2, length + 1, (rows, 1), generator=generator)
        sides = (side.masked_fill(~mask, PAD).numpy() for side in (source, target))
        made.append(make_batch(*sides, rows=torch.arange(rows).numpy()))
    return made
