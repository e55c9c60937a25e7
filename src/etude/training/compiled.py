"""Compile the training step (`trainer.compile`): the same function, except for rounding and the dropout masks."""

import functools
import logging
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

log = logging.getLogger(__name__)

# What mode="reduce-overhead" sets, with a warning at 1,000 shapes in place of 8, and without graphs of parts of the
# code, which are younger than graphs of all of it and fail more often (pytorch/pytorch#169050).
_CUDA_GRAPHS: dict[str, Any] = {
    "triton.cudagraphs": True,
    "triton.cudagraph_dynamic_shape_warn_limit": 1000,
    "graph_partition": False,
}


def compile_step(model: nn.Module, mode: Literal[True, "reduce-overhead"]) -> None:
    """Wrap what a training step computes in `torch.compile`, in place; it is compiled when first called.

    In étude's own models that is everything up to the projection, whose cost is summed in chunks (`model.chunks`).
    Shapes are dynamic, because batches have hundreds of them. Decoding stays uncompiled.

    Args:
        model: its `hidden`, or else its `forward`, is replaced.
        mode: True, or "reduce-overhead" to record CUDA graphs as well. A GPU replays a graph without waiting for
            Python, which pays for small models; a graph fits one shape, so batches are padded to few shapes.
    """
    name = "hidden" if hasattr(model, "hidden") else "forward"
    log.info("compiling: the first step and the first validation take minutes")
    step = getattr(model, name)
    if mode == "reduce-overhead":
        known = torch._inductor.list_options()
        options = {name: value for name, value in _CUDA_GRAPHS.items() if name in known}
        compiled = in_few_shapes(torch.compile(step, dynamic=True, options=options))
    else:
        compiled = torch.compile(step, dynamic=True)
    setattr(model, name, compiled)


def in_few_shapes(step: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Let `step` see only batches of `round_up_rows(B)` sentences, the last one repeated; return B rows of its result.

    The number of columns is already a multiple of eight on a GPU (`Batch.to`). Repeated rows have no gradient.

    Args:
        step: maps (source, source_mask, target_in), each with B rows, to a tensor with B rows.
    """

    @functools.wraps(step)
    def padded(source: Tensor, source_mask: Tensor, target_in: Tensor, **more: Any) -> Tensor:
        if more:  # such as `cost`, a sum over all rows, which repeated ones would change
            return step(source, source_mask, target_in, **more)
        rows = len(source)
        index = torch.arange(round_up_rows(rows), device=source.device).clamp_(max=rows - 1)
        # A copy, because the next graph overwrites what this one returned.
        return step(source[index], source_mask[index], target_in[index])[:rows].clone()

    return padded


def round_up_rows(rows: int) -> int:
    """Return the next multiple of 8, or of an eighth to a quarter of `rows` where that is more."""
    unit = max(8, (1 << rows.bit_length()) // 8)
    return -(-rows // unit) * unit
