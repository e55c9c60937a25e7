"""`torch.nn.Transformer` in training: as people write it, or with what étude does around the model as well."""

import torch
from torch import Tensor

from etude.data.batch import Batch
from etude.processor.allocator import keep_large_blocks
from etude.processor.matmul import choose_matmul
from peers.torch_nn import HandWired, smoothed_loss
from peers.trained import Trained


class Training(Trained):
    """Where it is `like_ours`: étude's allocator and library of products, fused Adam, dropout in the paper's places."""

    def __init__(self, bf16: bool = False, like_ours: bool = False) -> None:
        super().__init__(bf16)
        if like_ours:
            keep_large_blocks()
        self.model = HandWired(same_dropout=like_ours)
        if like_ours:
            choose_matmul("auto", self.model)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=like_ours or None
        )

    def loss(self, batch: Batch) -> Tensor:
        return smoothed_loss(self.model(batch.source, batch.source_mask, batch.target_in), batch.target_out)
