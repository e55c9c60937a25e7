"""The bar: a decoder alone learns as well as one that somebody wires by hand from PyTorch's layers."""

import math
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.data.tokenizer import PAD
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.tasks.perplexity import perplexity, sum_tokens
from etude.training.build import training_data
from etude.training.run import train
from etude.training.schedule import learning_rate

SEEDS, TOLERANCE = (1, 2), 0.02


class HandWired(nn.Module):
    """`torch.nn.TransformerEncoder` under a causal mask, with sinusoids and one table for words in and out.

    Args:
        weights: what étude's model begins with, from which this one begins, too.
        sizes: d_model, heads, d_ff, n_layers and dropout.
    """

    def __init__(self, weights: dict[str, Tensor], sizes: dict[str, Any]) -> None:
        super().__init__()
        width, dropout = sizes["d_model"], sizes["dropout"]
        self.table = nn.Embedding.from_pretrained(weights["embedding.source_table.weight"].clone(), freeze=False)
        layer = nn.TransformerEncoderLayer(
            width, sizes["heads"], sizes["d_ff"], dropout, batch_first=True, layer_norm_eps=1e-6
        )
        self.layers = nn.TransformerEncoder(layer, sizes["n_layers"])
        self.dropout = nn.Dropout(dropout)
        for number, one in enumerate(self.layers.layers):
            ours = {name: weights[f"decoder.layers.{number}.{name}.weight"] for name in PARTS}
            begin = {
                "self_attn.in_proj_weight": torch.cat([ours[f"attention.{kind}_proj"] for kind in "qkv"]),
                "self_attn.out_proj.weight": ours["attention.out_proj"],
                "linear1.weight": ours["feedforward.inner"],
                "linear1.bias": torch.zeros(sizes["d_ff"]),
                "linear2.weight": ours["feedforward.outer"],
                "linear2.bias": torch.zeros(width),
            }
            one.load_state_dict(one.state_dict() | begin)
            # PyTorch's sub-layers have dropouts that the paper's have not, and its attention biases, which begin at 0.
            one.dropout.p = one.self_attn.dropout = 0.0
            for bias in (one.self_attn.in_proj_bias, one.self_attn.out_proj.bias):
                bias.requires_grad_(False)

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        length, width = target_in.size(1), self.table.embedding_dim
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
        angles = torch.arange(length)[:, None] * rates
        position = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        x = self.dropout(self.table(target_in) * width**0.5 + position)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return F.linear(self.layers(x, mask=mask, is_causal=True), self.table.weight)


PARTS = [*(f"attention.{kind}_proj" for kind in ("q", "k", "v", "out")), "feedforward.inner", "feedforward.outer"]


def by_hand(run: RunDir) -> float:
    """The test perplexity after as many steps on the same batches, with the same optimizer and rates."""
    config: dict[str, Any] = run.config()
    store, node = build.token_store(config), config["model"]
    torch.manual_seed(1000 + config["seed"])  # whose dropout is its own
    model = HandWired(build.model(config, store.vocab_size).state_dict(), node).train()
    assert sum(weight.numel() for weight in model.parameters() if weight.requires_grad) == run.result()["parameters"]
    adam = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    rate, stream = learning_rate(config), training_data(config, store, start_step=0).train_dataloader()
    for step in range(config["budget"]["max_steps"]):
        batch = stream.micro_batch(step, 0)
        logits = model(batch.source, batch.source_mask, batch.target_in)
        loss = F.cross_entropy(
            logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD, label_smoothing=0.1
        )  # the mean of the tokens
        adam.param_groups[0]["lr"] = rate(step + 1)
        adam.zero_grad()
        loss.backward()
        adam.step()
    batches = build.evaluation_batches(config, store.split("test"))
    return perplexity(*sum_tokens(model, batches)[:2])


def log_perplexities(folder: Path, *overrides: str) -> tuple[float, float]:
    """Ours, and that of the model wired by hand."""
    folders = [f"runs_dir={folder / 'runs'}", f"cache_dir={folder / 'cache'}", "logger=none", "trainer=cpu"]
    run = freeze(compose(["task=language_modelling", "data.test_pairs=2000", *overrides, *folders]))
    return math.log(train(run)["test"]["perplexity"]), math.log(by_hand(run))


def test_without_dropout_a_decoder_alone_trains_as_one_wired_by_hand(tmp_path: Path) -> None:
    small = ["data.train_pairs=1000", "data.valid_pairs=50", "data.test_pairs=200", "budget.max_steps=20"]
    ours, theirs = log_perplexities(tmp_path, "model.dropout=0", *small)
    assert ours == pytest.approx(theirs, abs=1e-4)


@pytest.mark.slow
def test_a_decoder_alone_is_within_two_per_cent_of_one_wired_by_hand(tmp_path: Path) -> None:
    """Geometric means over seeds: with the dropout of another generator one alone moves by half the bar."""
    found = [log_perplexities(tmp_path, "budget.max_steps=400", f"seed={seed}") for seed in SEEDS]
    ours, theirs = map(fmean, zip(*found, strict=True))
    assert abs(ours - theirs) < math.log(1 + TOLERANCE), found
