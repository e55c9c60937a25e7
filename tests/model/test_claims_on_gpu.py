"""On a GPU every variation is the same function, close to it in half precision, and waits for no number in a step."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch.testing import assert_close

from etude.config import parts
from etude.data.tokenizer import PAD
from etude.model import chunks
from etude.model.chunks import sum_cost
from etude.model.recurrent import CELLS, recurrent_layers
from etude.processor.matmul import choose_matmul

from .test_claims_on_backends import logits_and_gradients

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

GPU = torch.device("cuda")


@contextmanager
def waiting_for_nothing() -> Iterator[None]:
    """Whatever makes the processor wait for the GPU inside fails."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def there(sentences):
    """The sentences on the GPU, where one source is nothing but padding."""
    source, mask, target = (tensor.clone() for tensor in sentences)
    mask[1] = False
    return source.to(GPU), mask.to(GPU), target.to(GPU)


def decode(model, source, mask, target):
    """The logits (B, T, V) of each step, with the caches."""
    state = model.start(source, mask)
    return torch.stack([model.step(tokens, state) for tokens in target.unbind(1)], dim=1)


def test_a_gpu_gives_the_logits_and_gradients_of_a_processor(model, longer_sentences):
    model, inputs = model.double(), there(longer_sentences)
    expected = logits_and_gradients(model, list(model.parameters()), [tensor.cpu() for tensor in inputs])
    model.to(GPU)
    with torch.backends.cudnn.flags(enabled=False):  # whose recurrent layers have no gradients in evaluation mode
        logits, gradients = logits_and_gradients(model, list(model.parameters()), inputs)
    assert_close((logits.cpu(), tuple(gradient.cpu() for gradient in gradients)), expected)


@torch.inference_mode()
def test_its_kernels_of_single_and_half_precision_stay_near(model, longer_sentences):
    inputs = there(longer_sentences)
    expected = model.double()(*(tensor.cpu() for tensor in inputs)).float()
    model.to(GPU, torch.float32)
    choose_matmul("default", model, accelerator="gpu")
    assert_close(model(*inputs).cpu(), expected, atol=2e-5, rtol=2e-4)
    for precision, apart in ((torch.bfloat16, 0.2), (torch.float16, 0.05)):
        with torch.autocast("cuda", precision):
            half, stepwise = model(*inputs), decode(model, *inputs)
        assert_close(half.float().cpu(), expected, atol=apart, rtol=apart / 4)
        assert_close(stepwise.float().cpu(), expected, atol=apart, rtol=apart / 4)


@pytest.mark.parametrize("cell", CELLS)
def test_recurrent_layers_compute_in_single_precision_whatever_is_asked_for(cell):
    layers, x = recurrent_layers(cell, 4, 4).to(GPU), torch.randn(2, 3, 4, device=GPU)
    with torch.autocast("cuda", torch.bfloat16):
        out, hidden = layers(x)
        assert layers(x.bfloat16(), hidden)[0].dtype == out.dtype == torch.float32


@torch.no_grad()
def test_a_decoding_step_there_waits_for_no_number(model, longer_sentences):
    model, inputs = model.double().to(GPU), there(longer_sentences)
    decode(model, *inputs)  # what the first makes for all
    source, mask, target = inputs
    state = model.start(source, mask)
    with waiting_for_nothing():
        logits = [model.step(tokens, state) for tokens in target.unbind(1)]
    assert_close(torch.stack(logits, dim=1), model(*inputs))


def test_a_training_step_there_waits_for_no_number(tiny, configured, variation, longer_sentences, monkeypatch):
    monkeypatch.setattr(chunks, "_GPU_LOGITS", 1)  # logits a sentence at a time
    dropout = ["model.dropout=0.1", *["model.attention_dropout=0.1"] * ("attention=linear" not in variation)]
    model = tiny(variation, *dropout).to(GPU).train()
    source, mask, target = there(longer_sentences)
    loss = parts.make(configured(variation)["loss"], PAD)

    def step() -> torch.Tensor:
        nats = sum_cost(model, source, mask, target, lambda logits, rows: loss(logits, target[rows]))
        nats.backward()
        return nats.detach()

    step()
    with waiting_for_nothing():
        nats = step()
    assert nats.isfinite()
    assert any(weight.grad is not None and weight.grad.any() for weight in model.parameters())
