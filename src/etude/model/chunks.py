"""Project to logits and compute their loss in chunks of a few sentences, so that no batch needs all logits in memory.

Logits (B, T, V) and their gradient are the largest tensors of a training step. As their cost is a sum over sentences,
it can be summed chunk by chunk, and the gradient of each chunk be propagated to (b, T, D) and to the matrix V x D
before the next chunk is projected.
"""

from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Cost = Callable[[Tensor, slice], Tensor]
"""Called with logits (b, T, V) of some sentences and their slice of the batch; returns a sum over these sentences.

Gradients flow through the logits only: any other weight that it uses gets none where there are several chunks.
"""

_CPU_LOGITS, _GPU_LOGITS = 1 << 23, 1 << 26  # of a chunk: a GPU needs more to be busy


def takes_cost(model: nn.Module) -> bool:
    """Return whether the `forward` of a model takes a `cost`, which it then sums in chunks."""
    return _takes_cost(type(model).forward)


@cache
def _takes_cost(forward: Callable[..., Any]) -> bool:
    return "cost" in signature(forward).parameters  # takes 0.05 ms, and every step asks


def sentences_per_chunk(device: str, target: int, vocab_size: int) -> int:
    """Compute how many sentences of T = `target` tokens make a chunk, on a device of type "cpu" or another."""
    return max(1, (_CPU_LOGITS if device == "cpu" else _GPU_LOGITS) // (target * vocab_size))


def sum_cost(model: nn.Module, source: Tensor, source_mask: Tensor, target_in: Tensor, cost: Cost) -> Tensor:
    """Sum `cost` over a batch: in chunks if the model takes a `cost`, else of all its logits at once."""
    if takes_cost(model):
        return cast(Tensor, model(source, source_mask, target_in, cost=cost))
    return cost(model(source, source_mask, target_in), slice(None))


def sum_in_chunks(
    project: Callable[[Tensor], Tensor], weights: list[nn.Parameter], hidden: Tensor, cost: Cost, *, copies: int = 1
) -> Tensor:
    """Sum `cost` over a batch in chunks of sentences.

    Args:
        project: maps (b, T, D) to logits (b, T, V).
        weights: the parameters that `project` may use; V is the largest number of rows among them.
        hidden: (B, T, D), what is projected.
        cost: see `Cost`.
        copies: how many numbers `project` keeps for each logit.
    """
    vocab_size = copies * max((weight.size(0) for weight in weights if weight.dim()), default=1)
    sentences = sentences_per_chunk(hidden.device.type, hidden.size(1), vocab_size)
    if sentences >= len(hidden):
        return cost(project(hidden), slice(None))
    if torch.is_grad_enabled():
        return cast(Tensor, _ChunkedCost.apply(hidden, project, cost, sentences, *weights))
    return torch.stack([cost(project(hidden[rows]), rows) for rows in _chunk_slices(len(hidden), sentences)]).sum(dim=0)


class _ChunkedCost(torch.autograd.Function):
    """`cost(project(hidden))`, whose gradient is computed in the forward pass and kept for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, project: Callable[[Tensor], Tensor], cost: Cost, sentences: int, *weights: Tensor
    ) -> Tensor:
        """Sum the cost and its gradients; arguments as of `sum_in_chunks`, and `sentences` of each chunk."""
        trainable = [weight for weight in weights if weight.requires_grad]
        gradients: list[Tensor | None] = [None] * len(trainable)
        hidden_gradient, total = torch.empty_like(hidden), hidden.new_zeros(())
        for rows in _chunk_slices(len(hidden), sentences):
            chunk = hidden[rows].detach().requires_grad_()
            with torch.enable_grad():
                nats = cost(project(chunk), rows)
            hidden_gradient[rows], *new_gradients = torch.autograd.grad(nats, (chunk, *trainable), allow_unused=True)
            pairs = zip(gradients, new_gradients, strict=True)
            gradients = [new if old is None else old.add_(new) for old, new in pairs]
            total = total + nats.detach()
        remaining = iter(gradients)
        ctx.save_for_backward(
            hidden_gradient, *(next(remaining) if weight.requires_grad else None for weight in weights)
        )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `hidden` and the weights."""
        hidden_gradient, *gradients = (one if one is None else one * grad_output for one in ctx.saved_tensors)
        return hidden_gradient, None, None, None, *gradients


def _chunk_slices(rows: int, size: int) -> Iterator[slice]:
    return (slice(first, first + size) for first in range(0, rows, size))
