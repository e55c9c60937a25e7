"""Which position depends on which, found by differentiation: path lengths and chains of steps."""

from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn

from etude.model.recurrent import Gru, Lstm, RecurrentEncoder


def max_path_length(layer: nn.Module, length: int, width: int) -> int | None:
    """The longest of the shortest paths between two of `length` positions, in whichever direction there is one.

    Along the graph of dependencies, where an edge is a derivative that is not zero: from a position of a layer's input
    to one of its output, so that a path of p edges takes p stacked layers; in a recurrent layer from an input, or the
    state before it, to a state, so that a path of p edges takes p steps.

    Args:
        layer: in float64.
        length: n.
        width: D.

    Returns:
        None where no number of layers joins some two positions.
    """
    steps = _steps(layer, length, width) if isinstance(layer, RecurrentEncoder) else _count_layers(layer, length, width)
    farthest = np.minimum(steps, steps.T).max()  # what reads in one direction alone joins two positions all the same
    return None if np.isinf(farthest) else int(farthest)


def dependent_outputs(layer: nn.Module, length: int, width: int) -> np.ndarray:
    """(n, n): whether the output at the second position depends on the input at the first."""
    x = _noise(1, length, width).requires_grad_()
    y = layer(x, torch.ones(1, length, dtype=torch.bool))
    weights = _noise(width)
    found = [torch.autograd.grad(y[0, t] @ weights, x, retain_graph=True)[0][0] for t in range(length)]
    return (torch.stack(found, dim=1) != 0).any(dim=-1).numpy()


def _count_layers(layer: nn.Module, length: int, width: int) -> np.ndarray:
    """(n, n): how many layers it takes from one position to another, one at least."""
    return np.maximum(shortest_path(dependent_outputs(layer, length, width), unweighted=True), 1.0)


def _steps(layer: RecurrentEncoder, length: int, width: int) -> np.ndarray:
    """(n, n): how many steps it takes from one input to another state, the step that reads it included."""
    directions = [(layer.forwards[0], False), *((one, True) for one in layer.backwards[:1])]
    return np.min([_count_steps(cell, length, width, turned) for cell, turned in directions], axis=0)


def _count_steps(cell: Any, length: int, width: int, turned: bool) -> np.ndarray:
    """The same in one direction: inputs are the first n nodes of the graph, states the others."""
    order = range(length)[::-1] if turned else range(length)
    edges = np.zeros((2 * length, 2 * length))
    before: int | None = None
    hidden = None
    for t in order:
        x = _noise(1, 1, width).requires_grad_()
        out, after = _step(cell, x, hidden)
        reads = [x, *(hidden or ())]
        found = torch.autograd.grad(out.flatten() @ _noise(out.numel()), reads)
        edges[t, length + t] = bool(found[0].any())
        if before is not None:
            edges[length + before, length + t] = any(bool(one.any()) for one in found[1:])
        before, hidden = t, tuple(one.detach().requires_grad_() for one in after)
    return shortest_path(edges, unweighted=True, indices=range(length))[:, length:]


def _step(cell: Gru | Lstm, x: Tensor, hidden: tuple[Tensor, ...] | None) -> tuple[Tensor, tuple[Tensor, ...]]:
    out, after = cell(x, hidden)
    return out, after


def chain_length(layer: nn.Module, length: int, width: int) -> int:
    """How many operations must wait for each other: the longest chain from output to input that autograd recorded.

    The layer is in float64, for which PyTorch has no kernel that would hide the steps of a recurrent one.
    """
    x = _noise(1, length, width).requires_grad_()
    return longest_chain(layer(x, torch.ones(1, length, dtype=torch.bool)), x)


def longest_chain(y: Tensor, x: Tensor) -> int:
    """Operations on the longest way from `x`, a leaf, to `y`; 0 where there is none."""
    depth: dict[Any, float] = {}
    stack: list[Any] = [y.grad_fn]
    while stack:  # without recursion, which Python allows too little of
        node = stack[-1]
        below = [one for one, _ in node.next_functions if one is not None]
        if waiting := [one for one in below if one not in depth]:
            stack += waiting
            continue
        reached = 0.0 if getattr(node, "variable", None) is x else -np.inf
        depth[stack.pop()] = max([reached, *(depth[one] + 1 for one in below)])
    return int(max(depth[y.grad_fn], 0))


def _noise(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)
