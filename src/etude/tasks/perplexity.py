"""Perplexity per subword, as in Table 3: exp of the mean negative log-likelihood of the real target tokens.

Never smoothed, and never a mean of batch means: sums of nats and tokens are kept apart until the end, so that the
figure is the same however the text was batched.
"""

import math
from collections.abc import Iterable

import torch
from torch import nn
from torch.nn import functional as F

from etude.data.batching import Batch
from etude.data.tokenizer import PAD


def negative_log_likelihood(model: nn.Module, batches: Iterable[Batch]) -> tuple[float, int]:
    """-log P(target | source), summed over every real target token of `batches`; end tokens count, padding does not.

    Args:
        model: called with source (B, S), its mask and target_in (B, T), gives logits (B, T, V). It is evaluated
            without dropout, where it is, and left in the mode it was in.
        batches: moved to the model's device one by one.

    Returns:
        The sum in nats, and the number of tokens.
    """
    return sum_tokens(model, batches)[:2]


@torch.no_grad()
def sum_tokens(model: nn.Module, batches: Iterable[Batch]) -> tuple[float, int, int]:
    """As `negative_log_likelihood`, and of how many tokens the model finds none more probable."""
    nats, tokens, right = 0.0, 0, 0
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    try:
        for batch in batches:
            batch = batch.to(device)
            logits = model(batch.source, batch.source_mask, batch.target_in).float().flatten(0, 1)
            targets = batch.target_out.flatten()
            losses = F.cross_entropy(logits, targets, ignore_index=PAD, reduction="none")
            nats += losses.cpu().sum(dtype=torch.float64).item()  # not every device has float64
            tokens += int((targets != PAD).sum())
            right += int((logits.argmax(-1)[targets != PAD] == targets[targets != PAD]).sum())
    finally:
        model.train(training)
    return nats, tokens, right


def perplexity(nats: float, tokens: int) -> float:
    """exp(nats / tokens); infinite where that is more than a float can hold.

    Raises:
        ValueError: there are no tokens.
    """
    if tokens <= 0:
        raise ValueError("the perplexity of no tokens is not defined")
    try:
        return math.exp(nats / tokens)
    except OverflowError:
        return math.inf
