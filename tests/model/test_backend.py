"""The ways to compute attention agree, on every pattern of mask and bias, and drop the weights."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from etude.model.backend import Eager, Sdpa, weights
from etude.model.by_device import ByDevice
from etude.model.fused import Fused
from etude.model.mask import causal_mask

B, H, T, S, K = 2, 3, 4, 5, 6
WIDTHS = (6, 7)  # V: PyTorch's fused kernels want it equal to K, and others step in where it is not


def drawn(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def blank_rows():
    """Any pattern, with a query that may look nowhere and a sentence of which nothing may be seen."""
    mask = drawn(B, H, T, S) > 0
    mask[0, 1, 2] = False
    mask[1] = False
    return mask


MASKS = {
    "everything": torch.ones(1, 1, dtype=torch.bool),
    "causal": torch.ones(T, S, dtype=torch.bool).tril(1),
    "padding": torch.arange(S) < torch.tensor([5, 2])[:, None, None, None],
    "a blank sentence": torch.arange(S) < torch.tensor([3, 0])[:, None, None, None],
    "blank rows": blank_rows(),
}
BIASES = {"none": (), "per head": (H, T, S), "per query": (B, H, T, S), "one number": (1, 1, 1)}


def read_and_gradients(backend, mask, bias_shape, d_v):
    """What is read, and the gradients of queries, keys, values and, if there is one, the bias."""
    inputs = [drawn(B, H, T, K), drawn(B, H, S, K), drawn(B, H, S, d_v)]
    inputs += [drawn(*bias_shape)] if bias_shape else []
    inputs = [x.requires_grad_() for x in inputs]
    bias = inputs[3] if bias_shape else None
    read = backend(*inputs[:3], mask, bias)
    return read, torch.autograd.grad((read * drawn(B, H, T, d_v)).sum(), inputs)


@pytest.mark.parametrize(("mask", "bias", "d_v"), list(itertools.product(MASKS, BIASES, WIDTHS)))
@pytest.mark.parametrize("other", [Fused, Sdpa])
def test_every_backend_reads_and_learns_the_same(mask, bias, d_v, other):
    explicit, fused = (
        read_and_gradients(backend(dropout=0.0), MASKS[mask], BIASES[bias], d_v) for backend in (Eager, other)
    )
    assert_close(fused, explicit)


@pytest.mark.parametrize("d_v", WIDTHS)
@pytest.mark.parametrize("backend", [Eager, Fused, Sdpa])
def test_a_row_that_may_look_nowhere_reads_the_mean_and_teaches_nothing_to_queries_and_keys(backend, d_v):
    read, (queries, keys, values) = read_and_gradients(backend(dropout=0.0), MASKS["a blank sentence"], (), d_v)
    assert_close(read[1], drawn(B, H, S, d_v)[1].mean(1, keepdim=True).expand(H, T, d_v))
    assert_close(values[1], (drawn(B, H, T, d_v)[1].sum(1, keepdim=True) / S).expand(H, S, d_v))
    assert not queries[1].any()
    assert not keys[1].any()
    assert queries[0].any()


def test_weights_sum_to_one_and_are_zero_where_looking_is_not_allowed():
    mask = MASKS["causal"]
    found = weights(drawn(B, H, T, K), drawn(B, H, S, K), mask, drawn(H, T, S))
    assert_close(found.sum(-1), torch.ones(B, H, T, dtype=torch.float64))
    assert not found.masked_select(~mask).any()
    assert (found.masked_select(mask) > 0).all()


@pytest.mark.parametrize("backend", [Eager, Fused, Sdpa])
def test_dropout_falls_on_the_weights_and_only_in_training(backend):
    torch.manual_seed(1)
    part, length = backend(dropout=0.25), 400
    queries, keys = torch.randn(1, 1, length, K), torch.randn(1, 1, length, K)
    mask, each = torch.ones(1, 1, dtype=torch.bool), torch.eye(length)[None, None]  # reading it shows the weights
    kept = part.eval()(queries, keys, each, mask, None)
    assert_close(kept, weights(queries, keys, mask, None))
    found = part.train()(queries, keys, each, mask, None)
    share = (found == 0).float().mean().item()
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / found.numel()) ** 0.5
    assert_close(found, torch.where(found == 0, 0.0, kept / 0.75))


@pytest.mark.parametrize("backend", [Eager, Fused, Sdpa])
def test_dropout_comes_from_the_seed(backend):
    part = backend(dropout=0.5).train()
    inputs = (drawn(B, H, T, K), drawn(B, H, S, K), drawn(B, H, S, K), MASKS["everything"], None)

    def read(seed):
        torch.manual_seed(seed)
        return part(*inputs)

    assert torch.equal(read(1), read(1))
    assert not torch.equal(read(1), read(2))


@pytest.mark.parametrize(("device", "taken"), [("cpu", Fused), ("meta", Sdpa)])
def test_each_device_gets_its_own(device, taken, monkeypatch):
    asked = []
    for backend in (Fused, Sdpa):
        monkeypatch.setattr(backend, "forward", lambda self, *inputs: asked.append(type(self)))
    ByDevice(dropout=0.1)(*(torch.empty(B, H, T, K, device=device) for _ in range(3)), MASKS["causal"], None)
    assert asked == [taken]


def test_no_mask_of_numbers_is_made_where_nothing_is_added_to_the_scores(monkeypatch):
    given = []
    monkeypatch.setattr(
        torch.nn.functional, "scaled_dot_product_attention", lambda *_, attn_mask, **__: given.append(attn_mask)
    )
    Sdpa(dropout=0.0)(drawn(B, H, T, K), drawn(B, H, S, K), drawn(B, H, S, K), MASKS["blank rows"], None)
    assert [mask.dtype for mask in given] == [torch.bool]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize(("other", "d_v"), [(Fused, K), (Sdpa, K), (Sdpa, K + 3)])
def test_a_mask_that_is_known_to_be_causal_is_read_like_its_numbers(bias, other, d_v):
    def squared(backend, mask):
        """As many keys as queries."""
        inputs = [
            drawn(B, H, T, K).requires_grad_(),
            drawn(B, H, T, K + 1)[..., 1:].requires_grad_(),
            drawn(B, H, T, d_v),
        ]
        added = drawn(*BIASES[bias])[..., :T] if BIASES[bias] else None
        read = backend(dropout=0.0)(*inputs, mask, added)
        return read, torch.autograd.grad((read * drawn(B, H, T, d_v)).sum(), inputs[:2])

    known = causal_mask(T, 0, torch.device("cpu"))
    assert_close(squared(other, known), squared(Eager, torch.ones(T, T, dtype=torch.bool).tril()))


def test_a_mask_that_is_known_to_be_causal_is_not_handed_over(monkeypatch):
    given = []
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", lambda *_, **words: given.append(words))
    queries, keys, values = drawn(B, H, T, K), drawn(B, H, T, K), drawn(B, H, T, K)
    Sdpa(dropout=0.0)(queries, keys, values, causal_mask(T, 0, queries.device), None)
    assert [(words["is_causal"], "attn_mask" in words) for words in given] == [(True, False)]
