"""What is summed over a batch a few sentences at a time is what all of its logits cost, its gradient too."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.variations import variations
from torch import nn
from torch.testing import assert_close

from etude.model import chunks
from etude.model.chunks import sum_cost, sum_in_chunks

VOCABULARY, D, T = 11, 5, 3


@pytest.fixture
def in_chunks(monkeypatch):
    """Logits of so many sentences at a time; called without a number, a list of how many each cost was asked for."""

    def at_most(logits: int) -> None:
        monkeypatch.setattr(chunks, "_CPU_LOGITS", logits)

    return at_most


def nats_of(targets):
    def cost(logits, rows):
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), targets[rows].flatten(), ignore_index=0, label_smoothing=0.1, reduction="sum"
        )

    return cost


@settings(max_examples=40, deadline=None)
@given(sentences=st.integers(1, 7), at_once=st.integers(0, 8), seed=st.integers(0, 99), factor=st.floats(0.5, 3))
def test_chunks_cost_what_the_whole_does_and_so_do_their_gradients(sentences, at_once, seed, factor):
    draw = torch.Generator().manual_seed(seed)
    hidden = torch.randn(sentences, T, D, generator=draw, dtype=torch.float64, requires_grad=True)
    weight, unused = (nn.Parameter(torch.randn(VOCABULARY, D, generator=draw, dtype=torch.float64)) for _ in range(2))
    targets = torch.randint(VOCABULARY, (sentences, T), generator=draw)
    seen = []

    def project(x):
        seen.append(len(x))
        return x @ weight.T

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_CPU_LOGITS", at_once * T * VOCABULARY)
        total = factor * sum_in_chunks(project, [weight, unused], hidden, nats_of(targets))
    whole = factor * nats_of(targets)(hidden @ weight.T, slice(None))
    assert_close(total, whole)
    assert max(seen) <= max(1, at_once)
    assert sum(seen) == sentences
    theirs = torch.autograd.grad(whole, [hidden, weight])
    assert_close(torch.autograd.grad(total, [hidden, weight], retain_graph=True), theirs)
    assert_close(torch.autograd.grad(total, [hidden, weight, unused], allow_unused=True)[:2], theirs)


@pytest.mark.parametrize("tying", variations("tying"))
def test_every_model_learns_the_same_in_chunks(tiny, tying, sentences, in_chunks):
    """What is computed of a chunk is up to the embedding alone."""
    model, (*_, target) = tiny(tying).double(), sentences

    def gradients():
        model.zero_grad()
        total = sum_cost(model, *sentences, nats_of(target))
        total.backward()
        return total.detach(), {name: w.grad for name, w in model.named_parameters() if w.grad is not None}

    whole = gradients()
    in_chunks(1)
    assert_close(gradients(), whole)


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize(("tying", "copies"), [("all", 1), ("mixture_of_softmaxes", 15)])
def test_no_more_logits_are_asked_for_than_fit(tiny, sentences, in_chunks, learning, tying, copies):
    model, most = tiny(f"model/tying={tying}"), []
    in_chunks(2 * sentences[2].size(1) * copies * len(model.embedding.output_table.weight))

    def cost(logits, rows):
        most.append(len(logits))
        return logits.sum()

    with torch.set_grad_enabled(learning):
        assert_close(sum_cost(model, *sentences, cost), model(*sentences).sum())
    assert most == [2, 1]


def test_weights_that_are_kept_as_they_are_get_no_gradient(tiny, sentences, in_chunks):
    model = tiny("model/tying=none")
    model.embedding.output_table.requires_grad_(False)
    in_chunks(1)
    sum_cost(model, *sentences, lambda logits, rows: logits.square().sum()).backward()
    assert model.embedding.output_table.weight.grad is None
    assert model.embedding.target_table.weight.grad.any()


class Halved(nn.Module):
    """A model that says nothing about costs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, source, source_mask, target_in):
        return self.model(source, source_mask, target_in) / 2


def test_a_model_of_ones_own_gives_all_its_logits(tiny, sentences, in_chunks):
    in_chunks(1)
    model, seen = Halved(tiny()), []

    def cost(logits, rows):
        seen.append((len(logits), rows))
        return logits.square().sum()

    assert_close(sum_cost(model, *sentences, cost), model(*sentences).square().sum())
    assert seen == [(3, slice(None))]


def test_mixed_precision_rounds_chunks_as_it_does_the_whole(tiny, sentences, in_chunks):
    model, found = tiny(), []
    for at_once in (1 << 20, 1):
        in_chunks(at_once)
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            total = sum_cost(model, *sentences, nats_of(sentences[2]))
        total.backward()
        found.append((total.detach(), model.embedding.output_table.weight.grad))
    assert_close(found[1], found[0], rtol=0.02, atol=0.02)
    assert found[1][1].dtype == torch.float32


def test_a_number_that_an_embedding_learns_is_no_matrix_of_words():
    hidden, matrix, warmth = torch.randn(2, 3, 4), nn.Parameter(torch.randn(5, 4)), nn.Parameter(torch.tensor(2.0))
    cost = sum_in_chunks(lambda h: h @ matrix.T * warmth, [matrix, warmth], hidden, lambda x, rows: x.square().sum())
    cost.backward()
    assert torch.isclose(warmth.grad, 2 * cost.detach() / warmth.detach())
