"""How probable a model finds each sentence, so that two ways of asking can be compared sentence by sentence."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from etude.data.batching import Batch
from etude.data.tokenizer import PAD
from etude.inspect.analyze.change import score


@dataclass(frozen=True)
class SentenceNll:
    """Of n sentences.

    Attributes:
        nats: -log P(target | source), (n,).
        tokens: of the target, end token counted, (n,).
    """

    nats: np.ndarray
    tokens: np.ndarray

    def __len__(self) -> int:
        return len(self.nats)

    def scores(self, times: np.ndarray) -> np.ndarray:
        """Perplexity per word piece of S samples in which each sentence occurs so many `times` (S, n): (S,)."""
        with np.errstate(over="ignore"):
            perplexities: np.ndarray = np.exp(times @ self.nats / (times @ self.tokens))
        return perplexities

    @property
    def perplexity(self) -> float:
        """Per word piece, over all sentences together."""
        return score(self)

    def among(self, rows: np.ndarray) -> "SentenceNll":
        """Of the sentences `rows` alone."""
        return SentenceNll(self.nats[rows], self.tokens[rows])


@torch.no_grad()
def sentence_nll(model: nn.Module, batches: Iterable[Batch]) -> SentenceNll:
    """-log P(target | source) of every row of `batches`, which lie where the model is and hold each row once.

    Args:
        model: in evaluation mode; called with source (B, S), its mask and target_in (B, T), gives logits (B, T, V).
        batches: their rows are numbered from 0, in any order.
    """
    found: dict[int, tuple[float, int]] = {}
    for batch in batches:
        logits = model(batch.source, batch.source_mask, batch.target_in).float()
        losses = F.cross_entropy(logits.transpose(1, 2), batch.target_out, ignore_index=PAD, reduction="none")
        nats = losses.sum(dim=1, dtype=torch.float64).tolist()
        tokens = (batch.target_out != PAD).sum(dim=1).tolist()
        found.update(zip(batch.rows.tolist(), zip(nats, tokens, strict=True), strict=True))
    in_order = [found[row] for row in range(len(found))]
    return SentenceNll(*(np.array(column) for column in zip(*in_order, strict=True)))
