"""`torch.nn.Transformer`, as a tutorial wires it; it needs nothing of étude's.

    python benchmarks/peers/torch_nn.py STORE

trains one step on the tokens that `etude prepare` has left in the folder STORE, as a script of one's own would.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

VOCABULARY, D_MODEL, D_FF, HEADS, LAYERS, DROPOUT, SMOOTHING = 8000, 256, 1024, 4, 3, 0.1, 0.1
PAD = 0


class HandWired(nn.Module):
    """What a tutorial does with `torch.nn.Transformer`."""

    def __init__(self, same_dropout: bool, vocabulary: int = VOCABULARY) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, D_MODEL)
        nn.init.normal_(self.embedding.weight, std=D_MODEL**-0.5)
        self.transformer = nn.Transformer(D_MODEL, HEADS, LAYERS, LAYERS, D_FF, DROPOUT, batch_first=True)
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        if same_dropout:
            for module in self.transformer.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.dropout = 0.0
                if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                    module.dropout.p = 0.0
        self.dropout = nn.Dropout(DROPOUT)
        angles = torch.arange(512)[:, None] / 10_000 ** (torch.arange(0, D_MODEL, 2) / D_MODEL)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        x, y = (
            self.dropout(self.embedding(t) * math.sqrt(D_MODEL) + self.positions[: t.size(1)])
            for t in (source, target_in)
        )
        causal = nn.Transformer.generate_square_subsequent_mask(target_in.size(1))
        padding = ~source_mask
        hidden = self.transformer(
            x, y, tgt_mask=causal, tgt_is_causal=True, src_key_padding_mask=padding, memory_key_padding_mask=padding
        )
        return F.linear(hidden, self.embedding.weight)


def smoothed_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of a target token, (B, T, V) against (B, T)."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING)


def _rows(store: Path, side: str, rows: int) -> Tensor:
    """The first rows of the training text, (B, S)."""
    tokens, ends = (np.load(store / f"train.{side}.{name}.npy", mmap_mode="r") for name in ("pieces", "ends"))
    lines = np.split(tokens[: ends[rows - 1]].astype(np.int64), ends[: rows - 1])
    return nn.utils.rnn.pad_sequence([torch.from_numpy(line) for line in lines], batch_first=True, padding_value=PAD)


def main() -> None:
    store = Path(sys.argv[1])
    source, target = (_rows(store, side, rows=20) for side in ("source", "target"))
    model = HandWired(same_dropout=False, vocabulary=json.loads((store / "meta.json").read_text())["vocab_size"])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    smoothed_loss(model(source, source != PAD, target.roll(1, dims=1)), target).backward()
    optimizer.step()


if __name__ == "__main__":
    main()
