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
from etude.config.identity import freeze
from etude.data.tokenizer import PAD
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.tasks.perplexity import perplexity, sum_tokens
from etude.training.build import training_data
from etude.training.run import train
from etude.training.schedule import learning_rate

STEPS, SEEDS, TOLERANCE = 800, (1, 2, 3), 0.02


class HandWired(nn.Module):
    """`torch.nn.TransformerEncoder` under a causal mask, with sinusoids and one table for words in and out."""

    def __init__(self, vocab_size: int, *, d_model: int, heads: int, d_ff: int, n_layers: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        layer = nn.TransformerEncoderLayer(d_model, heads, d_ff, dropout, batch_first=True, layer_norm_eps=1e-6)
        self.layers = nn.TransformerEncoder(layer, n_layers)
        self.dropout = nn.Dropout(dropout)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        for name, weight in self.layers.named_parameters():
            if weight.dim() == 2:
                nn.init.xavier_uniform_(weight)  # of W_Q, W_K and W_V as one matrix, as PyTorch holds them
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        for one in self.layers.layers:  # this sub-layer of PyTorch's has dropouts that the paper's has not
            one.dropout.p = one.self_attn.dropout = 0.0

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        length, width = target_in.size(1), self.table.embedding_dim
        rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
        angles = torch.arange(length)[:, None] * rates
        position = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        x = self.dropout(self.table(target_in) * width**0.5 + position)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return F.linear(self.layers(x, mask=mask, is_causal=True), self.table.weight)


def by_hand(run: RunDir) -> float:
    """The test perplexity after as many steps on the same batches, with the same optimizer and rates."""
    config: dict[str, Any] = run.config()
    store, node = build.token_store(config), config["model"]
    torch.manual_seed(1000 + config["seed"])  # whose numbers are its own
    sizes = {key: node[key] for key in ("d_model", "heads", "d_ff", "n_layers", "dropout")}
    model = HandWired(store.vocab_size, **sizes).train()
    assert sum(w.numel() for w in model.parameters()) == pytest.approx(run.result()["parameters"], rel=0.02)
    adam = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    rate, stream = learning_rate(config), training_data(config, store, start_step=0).train_dataloader()
    for step in range(STEPS):
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


@pytest.mark.slow(minutes=1.5)
def test_a_decoder_alone_is_within_two_per_cent_of_one_wired_by_hand(tmp_path: Path) -> None:
    """Geometric means over seeds: a seed alone moves either by as much as the bar."""
    ours, theirs = [], []
    for seed in SEEDS:
        folders = [f"runs_dir={tmp_path / 'runs'}", f"cache_dir={tmp_path / 'cache'}", "logger=none", "trainer=cpu"]
        text = ["data.test_pairs=2000", f"budget.max_steps={STEPS}", f"seed={seed}"]
        run = freeze(compose(["task=language_modelling", *text, *folders]))
        ours.append(math.log(train(run)["test"]["perplexity"]))
        theirs.append(math.log(by_hand(run)))
    assert abs(fmean(ours) - fmean(theirs)) < math.log(1 + TOLERANCE), (ours, theirs)
