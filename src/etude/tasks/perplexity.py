"""Perplexity per subword, as in Table 3: exp of the mean negative log-likelihood of the real target tokens.

Label smoothing does not enter it. Nats and tokens are summed separately over all batches and divided at the end, so
that the result does not depend on how the text was batched.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.data.batching import Batch
from etude.data.tokenizer import PAD
from etude.model.chunks import sum_cost


@torch.no_grad()
def sum_tokens(model: nn.Module, batches: Iterable[Batch]) -> tuple[float, int, int]:
    """Sum -log P(target | source) over every real target token of `batches`; end tokens count, padding does not.

    Args:
        model: called with source (B, S), its mask and target_in (B, T), returns logits (B, T, V). It is evaluated on
            its device, in evaluation mode; its mode is restored at the end.
        batches: moved to the model's device one by one.

    Returns:
        The sum in nats, the number of tokens, and the number of tokens that the model ranks first.
    """
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    try:
        counts = [count_batch(model, batch.to(device)) for batch in batches]
    finally:
        model.train(training)
    if not counts:
        return 0.0, 0, 0
    nats, tokens, right = torch.stack(counts).cpu().double().sum(dim=0).tolist()  # the only synchronisation with a GPU
    return nats, int(tokens), int(right)


def count_batch(model: nn.Module, batch: Batch) -> Tensor:
    """Count nats, tokens, and tokens that the model ranks first, in a batch; returns (3,), float64 if possible."""
    exact = torch.float32 if batch.source.device.type == "mps" else torch.float64

    def count(logits: Tensor, rows: slice) -> Tensor:
        targets, logits = batch.target_out[rows].flatten(), logits.float().flatten(0, 1)
        real = targets != PAD
        nats = F.cross_entropy(logits, targets, ignore_index=PAD, reduction="none").sum(dtype=exact)
        return torch.stack([nats, real.sum().to(exact), ((logits.argmax(-1) == targets) & real).sum().to(exact)])

    return sum_cost(model, batch.source, batch.source_mask, batch.target_in, count)


def row_nats(model: nn.Module, batch: Batch) -> Tensor:
    """Compute -log P(target | source) in nats of each row of a batch, (B,), float64; padding does not count."""
    logits = model(batch.source, batch.source_mask, batch.target_in).float()
    losses = F.cross_entropy(logits.transpose(1, 2), batch.target_out, ignore_index=PAD, reduction="none")
    return losses.sum(dim=1, dtype=torch.float64)


def perplexity(nats: float, tokens: int) -> float:
    """Compute exp(nats / tokens); infinity if that is more than a float can hold.

    Raises:
        ValueError: there are no tokens.
    """
    if tokens <= 0:
        raise ValueError("the perplexity of no tokens is not defined")
    try:
        return math.exp(nats / tokens)
    except OverflowError:
        return math.inf
