"""Marian as Hugging Face's `transformers` has it."""

import time

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

import decoding
from etude.data.batch import Batch
from etude.data.tokenizer import BOS, EOS, PAD
from peers.torch_nn import D_FF, D_MODEL, DROPOUT, HEADS, LAYERS, VOCABULARY, smoothed_loss
from peers.trained import Trained


def marian() -> nn.Module:
    """A model of everybody's size, which drops in the paper's places alone."""
    sides = ("encoder", "decoder")
    return MarianMTModel(
        MarianConfig(
            vocab_size=VOCABULARY,
            d_model=D_MODEL,
            **{f"{side}_layers": LAYERS for side in sides},
            **{f"{side}_ffn_dim": D_FF for side in sides},
            **{f"{side}_attention_heads": HEADS for side in sides},
            activation_function="relu",
            dropout=DROPOUT,
            attention_dropout=0.0,
            activation_dropout=0.0,
            scale_embedding=True,
            max_position_embeddings=512,
            pad_token_id=PAD,
            bos_token_id=BOS,
            decoder_start_token_id=BOS,
            eos_token_id=EOS,
            forced_eos_token_id=EOS,
        )
    )


class Training(Trained):
    """Its model, with the optimizer and the loss that its `Trainer` uses."""

    def __init__(self, bf16: bool = False) -> None:
        super().__init__(bf16)
        self.model = marian().train()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
        )

    def loss(self, batch: Batch) -> Tensor:
        shown = {"input_ids": batch.source, "attention_mask": batch.source_mask, "decoder_input_ids": batch.target_in}
        return smoothed_loss(self.model(**shown, use_cache=False).logits, batch.target_out)


class Decoding:
    """Its `generate`, which is made to give as many pieces as all others."""

    def __init__(self, beam: int = 4) -> None:
        torch.manual_seed(1)
        self.model, self.beam, self.data = marian().eval(), beam, decoding.batches(64)

    def round(self) -> float:
        started, pieces = time.perf_counter(), decoding.PIECES + 1  # and the end token
        for source, mask in self.data:
            self.model.generate(
                source, attention_mask=mask, num_beams=self.beam, min_new_tokens=pieces, max_new_tokens=pieces
            )
        return decoding.SENTENCES / (time.perf_counter() - started)
