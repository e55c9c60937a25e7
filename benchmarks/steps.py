"""A step of training on random subwords: `gpu.py` times it, `memory.py` and `planning.py` say what it takes."""

from collections.abc import Callable
from typing import Any

import torch

from etude.data.tokenizer import UNK
from etude.model.chunks import sum_cost
from etude.tasks import build
from etude.training.build import training_module

LENGTH = 25  # tokens of a row


def training_step(
    config: dict[str, Any], pieces: int, tokens: int, device: str = "cpu", length: int = LENGTH
) -> Callable[[], object]:
    """Build the model of a config for so many pieces, and return a step of its training on so many target tokens.

    Rows have `length` tokens.
    """
    module = training_module(config, build.model(config, pieces)).to(device).train()
    optimizer = module.make_optimizer(module.parameters())
    batch = torch.randint(UNK + 1, pieces, (tokens // length, length), device=device)
    mask = torch.ones_like(batch, dtype=torch.bool)

    def step() -> None:  # whose loss is gone when the next one begins, as in a run
        optimizer.zero_grad()
        with build.autocast(config, module):
            loss = sum_cost(module.model, batch, mask, batch, lambda logits, rows: module.loss(logits, batch[rows]))
        (loss / batch.numel()).backward()
        optimizer.step()

    return step
