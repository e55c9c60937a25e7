"""Compile the training step (`trainer.compile`): the same function, except for rounding and the dropout masks."""

import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


def compile_step(model: nn.Module) -> None:
    """Wrap what a training step computes in `torch.compile`, in place; it is compiled when first called.

    In étude's own models that is everything up to the projection, whose cost is summed in chunks (`model.chunks`).
    Shapes are dynamic, because batches have hundreds of them. Decoding stays uncompiled.
    """
    name = "hidden" if hasattr(model, "hidden") else "forward"
    log.info("compiling: the first step and the first validation take minutes")
    setattr(model, name, torch.compile(getattr(model, name), dynamic=True))
