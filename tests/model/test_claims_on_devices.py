"""Wherever it computes, every variation keeps to one device and waits for no number.

On the meta device tensors have shapes and no values: a tensor left on the processor, `.item()`, `if tensor:` or a
boolean index in a step fails there, as it would make a GPU wait. Between two steps of decoding a search does ask: which
hypotheses go on, and (`SourceRows.reorder`) whether any has changed its sentence.
"""

import torch

META = torch.device("meta")


def test_a_training_step_asks_for_no_number_and_leaves_the_device_to_none(tiny, variation, longer_sentences):
    model = tiny(variation, "model.dropout=0.1", "model.attention_dropout=0.1").to(META).train()
    logits = model(*(tensor.to(META) for tensor in longer_sentences))
    logits.logsumexp(-1).sum().backward()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert gradients
    assert {gradient.device for gradient in gradients} == {logits.device} == {META}


@torch.no_grad()
def test_a_decoding_step_asks_for_no_number(tiny, variation, longer_sentences):
    model = tiny(variation).to(META)
    source, mask, target = (tensor.to(META) for tensor in longer_sentences)
    state = model.start(source, mask)
    for tokens in target.unbind(1):
        logits = model.step(tokens, state)
    assert logits.device == META
