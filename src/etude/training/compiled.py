"""A training step as compiled code, `trainer.compile`: the same but for rounding, and for what dropout draws."""

import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


def compile_step(model: nn.Module) -> None:
    """Have PyTorch compile, in place and when it is first called, what a training step computes.

    Of étude's own models that is all up to the projection, whose cost is summed in chunks (`model.chunks`). Sizes are
    left open: batches have hundreds of shapes. Decoding goes on uncompiled.
    """
    name = "hidden" if hasattr(model, "hidden") else "forward"
    log.info("compiling: the first step and the first validation take minutes")
    setattr(model, name, torch.compile(getattr(model, name), dynamic=True))
