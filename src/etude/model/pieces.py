"""What logits cost, a few sentences at a time: those of a whole batch are never in memory together.

Logits (B, T, V) and their gradient are the largest tensors of a training step. Their cost is a sum over sentences, as
micro-batches and processes have it too: so it can be summed in pieces, and the gradient of each piece be taken to
(b, T, D) and to the matrix V x D before the next one is looked at.
"""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Cost = Callable[[Tensor, slice], Tensor]
"""Called with logits (b, T, V) of some sentences and their place in the batch; a sum over these sentences.

It learns through the logits alone: a weight that it reads besides gets no gradient where there are several pieces.
"""

_PROCESSOR, _OTHERS = 1 << 23, 1 << 26  # logits at a time: a GPU needs more to be busy


def takes_cost(model: nn.Module) -> bool:
    """Whether a model sums what its logits cost by itself, in pieces."""
    return "cost" in signature(model.forward).parameters


def sentences_at_once(device: str, target: int, vocab_size: int) -> int:
    """How many sentences of T tokens a piece holds, on a device of type "cpu" or another."""
    return max(1, (_PROCESSOR if device == "cpu" else _OTHERS) // (target * vocab_size))


def sum_cost(model: nn.Module, source: Tensor, source_mask: Tensor, target_in: Tensor, cost: Cost) -> Tensor:
    """What the logits of a batch cost, by a model that takes a `cost`, or else by any from all its logits at once."""
    if takes_cost(model):
        return cast(Tensor, model(source, source_mask, target_in, cost=cost))
    return cost(model(source, source_mask, target_in), slice(None))


def sum_in_pieces(
    project: Callable[[Tensor], Tensor], weights: list[nn.Parameter], hidden: Tensor, cost: Cost
) -> Tensor:
    """The sum of `cost` over a batch.

    Args:
        project: (b, T, D) to logits (b, T, V).
        weights: those that it may use; the longest has V rows.
        hidden: (B, T, D), what is projected.
        cost: see `Cost`.
    """
    vocab_size = max((weight.size(0) for weight in weights if weight.dim()), default=1)
    sentences = sentences_at_once(hidden.device.type, hidden.size(1), vocab_size)
    if sentences >= len(hidden):
        return cost(project(hidden), slice(None))
    if torch.is_grad_enabled():
        return cast(Tensor, _InPieces.apply(hidden, project, cost, sentences, *weights))
    return torch.stack([cost(project(hidden[rows]), rows) for rows in _cut(len(hidden), sentences)]).sum(dim=0)


class _InPieces(torch.autograd.Function):
    """`cost(project(hidden))` with its gradient, which is kept until it is asked for."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        project: Callable[[Tensor], Tensor],
        cost: Cost,
        sentences: int,
        *weights: Tensor,
    ) -> Tensor:
        """Arguments as of `sum_in_pieces`; `sentences` are taken at a time."""
        learning = [weight for weight in weights if weight.requires_grad]
        gradients: list[Tensor | None] = [None] * len(learning)
        of_hidden, total = torch.empty_like(hidden), hidden.new_zeros(())
        for rows in _cut(len(hidden), sentences):
            piece = hidden[rows].detach().requires_grad_()
            with torch.enable_grad():
                nats = cost(project(piece), rows)
            of_hidden[rows], *of_weights = torch.autograd.grad(nats, (piece, *learning), allow_unused=True)
            gradients = [new if old is None else old.add_(new) for old, new in zip(gradients, of_weights, strict=True)]
            total = total + nats.detach()
        given = iter(gradients)
        ctx.save_for_backward(of_hidden, *(next(given) if weight.requires_grad else None for weight in weights))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        """Of `hidden` and the weights."""
        of_hidden, *of_weights = (one if one is None else one * above for one in ctx.saved_tensors)
        return of_hidden, None, None, None, *of_weights


def _cut(rows: int, at_once: int) -> Iterator[slice]:
    return (slice(first, first + at_once) for first in range(0, rows, at_once))
