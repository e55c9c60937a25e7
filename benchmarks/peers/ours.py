"""étude, as `etude train` and `etude translate` run it."""

import time
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

import decoding
from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.batch import Batch
from etude.decoding.beam import BeamSearch
from etude.processor.allocator import keep_large_blocks
from etude.processor.matmul import choose_matmul
from etude.tasks import build
from etude.tasks.size import measure_size
from etude.training.build import training_module
from peers.torch_nn import D_FF, D_MODEL, DROPOUT, HEADS, LAYERS, SMOOTHING, VOCABULARY
from peers.trained import Trained, batches

SIZES = {
    "model.d_model": D_MODEL,
    "model.d_ff": D_FF,
    "model.heads": HEADS,
    "model.n_layers": LAYERS,
    "model.dropout": DROPOUT,
    "loss.smoothing": SMOOTHING,
    "tokenizer.vocab_size": VOCABULARY,
}


def config(*overrides: str) -> dict[str, Any]:
    """The config of a model of everybody's size."""
    return resolve(compose([*(f"{key}={value}" for key, value in SIZES.items()), *overrides]))


def flops_of_a_token() -> float:
    """Operations of training on one target token of the batches that everybody trains on."""
    size, data = measure_size(config()), batches()
    shapes = [(len(batch.source), batch.source.size(1), batch.target_out.size(1)) for batch in data]
    total = sum(rows * size.training_flops(source, target) for rows, source, target in shapes)
    return total / sum(batch.target_tokens for batch in data)


class Training(Trained):
    """The training step of the module that Lightning is given."""

    def __init__(self, bf16: bool = False) -> None:
        super().__init__(bf16)
        keep_large_blocks()
        chosen = config(f"precision={'bf16-mixed' if bf16 else '32-true'}")
        model = build.model(chosen, VOCABULARY)
        choose_matmul(chosen["trainer"]["matmul"], model)
        self.module = training_module(chosen, model).train()
        self.module.trainer = SimpleNamespace(accumulate_grad_batches=1, world_size=1)
        self.optimizer = self.module.configure_optimizers()["optimizer"]
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-4

    def loss(self, batch: Batch) -> Tensor:
        return self.module.training_step(batch, 0)


class Decoding:
    """Beam search over the sentences of `decoding.py`; a round is all of them, its rate sentences a second."""

    def __init__(self, bf16: bool = False, beam: int = 4) -> None:
        torch.manual_seed(1)
        keep_large_blocks()
        self.bf16, self.data = bf16, decoding.batches(64)
        model = decoding.random_transformer()
        choose_matmul("auto", model)
        self.model = decoding.Cached(model)
        self.search = BeamSearch(beam=beam, alpha=0.6, max_len_offset=50)

    def round(self) -> float:
        started = time.perf_counter()
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            for source, mask in self.data:
                self.search(self.model, source, mask)
        return decoding.SENTENCES / (time.perf_counter() - started)
