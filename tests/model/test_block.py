"""What a layer asks of positions and of its cache, and parallel layers against their equations."""

import pytest
import torch
from torch.testing import assert_close

from etude.model.position import NO_POSITION, Position
from etude.model.state import SourceRows

from .conftest import drawn

REAL = torch.arange(6) < torch.tensor([6, 3])[:, None]  # (B, S)


class Noting(Position):
    """Does nothing, and notes what it was asked."""

    def __init__(self):
        super().__init__(causal=True)
        self.asked = []

    def rotate(self, x, start):
        self.asked.append(("turn", x.size(2)))
        return x

    def score_bias(self, queries, length, start):
        self.asked.append(("bias", length))


def test_positions_act_on_self_attention_and_not_on_attention_to_the_encoder(jittered):
    model, position = jittered(), Noting()
    source, target, causal = torch.randn(1, 4, 16), torch.randn(1, 3, 16), torch.ones(3, 3, dtype=torch.bool).tril()
    everything = torch.ones(1, 4, dtype=torch.bool)
    model.encoder.layers[0](source, everything[:, None, None, :], position)
    assert position.asked == [("turn", 4), ("turn", 4), ("bias", 4)]
    position.asked.clear()
    layer = model.decoder.layers[0]
    layer(target, causal, position, SourceRows(source, everything), layer.start())
    assert position.asked == [("turn", 3), ("turn", 3), ("bias", 3)]


def test_a_cache_of_one_layer_projects_the_source_once(jittered):
    layer, memory = jittered().decoder.layers[0], torch.randn(1, 4, 16)
    cache = layer.start()
    calls = []
    layer.cross_attention.k_proj.register_forward_hook(lambda *_: calls.append(1))
    source = SourceRows(memory, torch.ones(1, 4, dtype=torch.bool))
    for step in range(3):
        seen = torch.ones(1, step + 1, dtype=torch.bool)
        layer(torch.randn(1, 1, 16), seen, NO_POSITION, source, cache)
    assert len(calls) == 1
    assert cache.self_attn.length == 3


@pytest.fixture
def parallel(jittered):
    return jittered("model/encoder=parallel", "model/decoder=parallel", "model/residual=pre").double()


def test_a_parallel_encoder_layer_adds_what_both_find_in_the_same_input(parallel):
    layer, x, mask = parallel.encoder.layers[0], drawn(2, 6, 16), REAL[:, None, None, :]
    h = layer.residual.norm(x)
    assert_close(layer(x, mask, NO_POSITION), x + layer.attention(h, h, mask, NO_POSITION) + layer.feedforward(h))


def test_a_parallel_decoder_layer_adds_what_all_three_find_in_the_same_input(parallel):
    layer, x, memory = parallel.decoder.layers[0], drawn(2, 5, 16), drawn(2, 6, 16)
    causal, h = torch.ones(5, 5, dtype=torch.bool).tril(), layer.residual.norm(x)
    expected = x + layer.attention(h, h, causal, NO_POSITION) + layer.feedforward(h)
    expected = expected + layer.cross_attention(h, memory, REAL[:, None, None, :], NO_POSITION)
    assert_close(layer(x, causal, NO_POSITION, SourceRows(memory, REAL), layer.start()), expected)
