"""Wherever it computes, every variation keeps to one device and waits for no number.

On the meta device tensors have shapes and no values: a tensor left on the processor, `.item()`, `if tensor:` or a
boolean index in a step fails there, as it would make a GPU wait. What may ask, each between two steps: a search, which
hypotheses go on, and `SourceRows.reorder`, whether any has changed its sentence; an evaluation, at its end, for its
sums; what watches for a divergence or writes a row of metrics, every so many steps.
"""

import numpy as np
import torch

from etude.config import parts
from etude.data.batch import make_batch
from etude.data.tokenizer import PAD
from etude.model import chunks
from etude.model.chunks import sum_cost
from etude.tasks.perplexity import count_batch

META = torch.device("meta")


def on_meta(longer_sentences):
    """The sentences as a batch there."""
    source, mask, target = (tensor.numpy() for tensor in longer_sentences)
    return make_batch(np.where(mask, source, PAD), target, np.arange(len(source))).to(META)


def test_no_step_of_decoding_or_training_and_no_count_asks_for_a_number_or_leaves_the_device(
    tiny, configured, variation, longer_sentences, monkeypatch
):
    given = [variation, *["model.attention_dropout=0.1"] * ("attention=linear" not in variation)]
    model, batch = tiny(*given).to(META), on_meta(longer_sentences)
    with torch.no_grad():
        state = model.start(batch.source, batch.source_mask)
        for tokens in batch.target_in[:, :6].unbind(1):  # more than a window, of four on either side
            logits = model.step(tokens, state)
        assert logits.device == count_batch(model, batch).device == META

    monkeypatch.setattr(chunks, "_GPU_LOGITS", 1)  # logits a sentence at a time
    loss, seen = parts.make(configured(*given)["loss"], PAD), []

    def cost(logits, rows):
        seen.append(len(logits))
        return loss(logits, batch.target_out[rows])

    nats = sum_cost(model.train(), batch.source, batch.source_mask, batch.target_in, cost)
    nats.backward()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert seen == [1, 1, 1]
    assert gradients
    assert {gradient.device for gradient in gradients} == {nats.device} == {META}
