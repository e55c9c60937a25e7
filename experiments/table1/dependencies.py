"""Dependencies between positions, found by differentiation: path lengths and sequential operations."""

from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn

from etude.model.recurrent import RecurrentEncoder


def max_path_length(layer: nn.Module, length: int, width: int) -> int | None:
    """Compute the maximum path length (Table 1): the longest of the shortest paths between two of `length` positions.

    Paths run along the graph of dependencies, whose edges are derivatives that are not zero. In general an edge leads
    from a position of the layer's input to one of its output, so a path of p edges takes p stacked layers. In a
    recurrent layer it leads from an input, or from the previous state, to a state, so a path of p edges takes p steps.
    Of the two directions between a pair of positions, the shorter one counts.

    Args:
        layer: the layer, in float64.
        length: n.
        width: D.

    Returns:
        The length; None if no number of layers connects some two positions.
    """
    if isinstance(layer, RecurrentEncoder):
        lengths = _path_steps(layer, length, width)
    else:
        lengths = np.maximum(shortest_path(dependent_outputs(layer, length, width), unweighted=True), 1.0)
    longest = np.minimum(lengths, lengths.T).max()  # a layer that reads in one direction connects both positions too
    return None if np.isinf(longest) else int(longest)


def dependent_outputs(layer: nn.Module, length: int, width: int) -> np.ndarray:
    """Return (n, n) booleans: whether the output at the second position depends on the input at the first."""
    x = _noise(1, length, width).requires_grad_()
    y = layer(x, torch.ones(1, length, dtype=torch.bool))
    weights = _noise(width)
    grads = [torch.autograd.grad(y[0, t] @ weights, x, retain_graph=True)[0][0] for t in range(length)]
    return (torch.stack(grads, dim=1) != 0).any(dim=-1).numpy()


def _path_steps(layer: RecurrentEncoder, length: int, width: int) -> np.ndarray:
    """Return (n, n): the number of steps from an input to the state at a position, including the one that reads it."""
    directions = [(layer.forwards[0], False), *((cell, True) for cell in layer.backwards[:1])]
    return np.min([_steps_of_direction(cell, length, width, reverse) for cell, reverse in directions], axis=0)


def _steps_of_direction(cell: Any, length: int, width: int, reverse: bool) -> np.ndarray:
    """Compute `_path_steps` for one direction: the first n nodes of the graph are inputs, the others states."""
    order = range(length)[::-1] if reverse else range(length)
    edges = np.zeros((2 * length, 2 * length))
    before: int | None = None
    hidden = None
    for t in order:
        x = _noise(1, 1, width).requires_grad_()
        out, after = cell(x, hidden)
        reads = [x, *(hidden or ())]
        grads = torch.autograd.grad(out.flatten() @ _noise(out.numel()), reads)
        edges[t, length + t] = bool(grads[0].any())
        if before is not None:
            edges[length + before, length + t] = any(bool(grad.any()) for grad in grads[1:])
        before, hidden = t, tuple(state.detach().requires_grad_() for state in after)
    return shortest_path(edges, unweighted=True, indices=range(length))[:, length:]


def chain_length(layer: nn.Module, length: int, width: int) -> int:
    """Count the sequential operations of a layer: the longest chain from output to input that autograd recorded.

    The layer is in float64: PyTorch has no fused kernel for it that would hide the steps of a recurrent layer.
    """
    x = _noise(1, length, width).requires_grad_()
    return longest_chain(layer(x, torch.ones(1, length, dtype=torch.bool)), x)


def longest_chain(y: Tensor, x: Tensor) -> int:
    """Count the operations on the longest path from the leaf `x` to `y`; 0 if there is none."""
    depth: dict[Any, float] = {}
    stack: list[Any] = [y.grad_fn]
    while stack:  # not recursive: the graph is deeper than Python's recursion limit
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
