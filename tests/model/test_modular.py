"""Each further step of attention against the equations of its paper, one head and one query at a time."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from etude.model import modular
from etude.model.backend import Eager
from etude.model.cache import SelfAttentionCache
from etude.model.norm import NoNorm, RmsNorm
from etude.model.numbered import number_layers
from etude.model.position import NO_POSITION, Alibi
from etude.model.scale import SqrtDk

from .conftest import drawn, jitter

D, H, K, T = 6, 2, 4, 7
NONE = {
    "qk_norm": NoNorm,
    "values": modular.OwnValues,
    "cap": modular.NoCap,
    "span": modular.GlobalSpan,
    "sink": modular.NoSink,
    "gate": modular.NoGate,
    "out_norm": NoNorm,
}


def attention(**steps) -> modular.ModularAttention:
    torch.manual_seed(5)
    sizes = {"d_model": D, "heads": H, "d_k": K, "d_v": K, "kv_heads": H, "bias": False}
    made = modular.ModularAttention(SqrtDk(d_k=K), Eager(dropout=0.0), False, **sizes, **NONE | steps)
    return jitter(made.double())


def causal() -> Tensor:
    return torch.ones(T, T, dtype=torch.bool).tril()


def by_hand(module, x: Tensor, allowed: Tensor, score=lambda s, h: s, sink=None, norm=None, gate=None, values=None):
    """Attention of one sentence (T, D); each argument is one step as its paper writes it, the rest equation (1)."""
    split = [part(x).unflatten(-1, (H, K)) for part in (module.q_proj, module.k_proj, module.v_proj)]
    queries, keys, own = split
    values = own if values is None else values(own)
    rows = []
    for t in range(len(x)):
        found = []
        for h in range(H):
            seen = [s for s in range(len(x)) if allowed[t, s]]
            q, ks = queries[t, h], [keys[s, h] for s in seen]
            if norm:
                q, ks = norm(q, module.q_norm.weight), [norm(k, module.k_norm.weight) for k in ks]
            powers = torch.stack([score(q @ k / math.sqrt(K), h).exp() for k in ks])
            total = powers.sum() + (sink(h) if sink else 0.0)
            out = sum(p / total * values[s, h] for p, s in zip(powers, seen, strict=True))
            found.append(out * gate(x[t], h) if gate else out)
        rows.append(torch.cat(found))
    return module.out_proj(torch.stack(rows))


def check(module, **steps) -> None:
    x = drawn(T, D)
    allowed = steps.pop("allowed", causal())
    assert_close(module(x[None], x[None], causal(), NO_POSITION)[0], by_hand(module, x, allowed, **steps))


def test_queries_and_keys_are_divided_by_their_root_mean_square():
    module = attention(qk_norm=partial(RmsNorm, d_model=K, eps=1e-6))
    check(module, norm=lambda v, gain: gain * v / (v.square().mean() + 1e-6).sqrt())


def test_a_soft_cap_bends_each_score():
    module = attention(cap=partial(modular.SoftCap, cap=0.3))
    check(module, score=lambda s, h: 0.3 * (s / 0.3).tanh())


def test_a_softmax_off_by_one_has_one_more_in_its_denominator():
    check(attention(sink=modular.ZeroSink), sink=lambda h: 1.0)


def test_a_learned_sink_has_the_power_of_its_score_in_the_denominator_of_its_head():
    module = attention(sink=partial(modular.LearnedSink, heads=H))
    check(module, sink=lambda h: module.sink.score[h].exp())


def test_a_sink_bears_biases_and_a_cap():
    position, x = Alibi(True, heads=H).double(), drawn(T, D)
    slopes = [2.0**-4, 2.0**-8]
    module = attention(cap=partial(modular.SoftCap, cap=0.3), sink=partial(modular.LearnedSink, heads=H))
    t = 5
    expected = []
    q, k, v = (part(x).unflatten(-1, (H, K)) for part in (module.q_proj, module.k_proj, module.v_proj))
    for h in range(H):
        scores = [0.3 * (q[t, h] @ k[s, h] / 2 / 0.3).tanh() - slopes[h] * (t - s) for s in range(t + 1)]
        powers = torch.stack(scores).exp()
        expected.append(powers @ v[: t + 1, h] / (powers.sum() + module.sink.score[h].exp()))
    assert_close(module(x[None], x[None], causal(), position)[0, t], module.out_proj(torch.cat(expected)))


def test_a_gate_is_a_sigmoid_of_the_input_for_each_head():
    module = attention(gate=partial(modular.HeadwiseGate, d_model=D, heads=H))
    check(module, gate=lambda x, h: 1 / (1 + (-(x @ module.gate.proj.weight[h])).exp()))


def test_a_head_scale_is_a_factor_for_each_head():
    module = attention(gate=partial(modular.HeadScale, heads=H))
    check(module, gate=lambda x, h: module.gate.factor[h])


class Layer(nn.Module):
    def __init__(self, **steps) -> None:
        super().__init__()
        self.attention = attention(**steps)


def stack(n: int, **steps) -> nn.ModuleList:
    layers = nn.ModuleList(Layer(**steps) for _ in range(n))
    number_layers(layers)
    return layers


def test_windows_and_whole_texts_take_turns_as_the_pattern_says():
    near = causal() & (torch.arange(T) > torch.arange(T)[:, None] - 3)
    span = partial(modular.PatternedSpan, window=2, pattern=["local", "global", "local"])
    for n, layer in enumerate(stack(5, span=span)):
        check(layer.attention, allowed=[near, causal(), near, near, causal()][n])


def test_a_span_may_see_on_both_sides():
    span, x = modular.PatternedSpan(window=1, pattern=["local"]), torch.zeros(1, H, 4, K)
    seen = span(torch.ones(1, 1, 1, 4, dtype=torch.bool), x, x, 0)
    assert seen[0, 0].int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]


@pytest.mark.parametrize("pattern", [[], ["local", "wide"]])
def test_a_pattern_without_a_layer_or_with_another_word_is_refused(pattern):
    with pytest.raises(ValueError, match=r"a pattern is a list of local and global, such as \[local, global\]"):
        modular.PatternedSpan(window=2, pattern=pattern)


def test_a_cap_that_is_not_above_zero_is_refused():
    with pytest.raises(ValueError, match="cap must be above 0, not 0"):
        modular.SoftCap(cap=0)


def test_values_are_mixed_with_those_of_the_first_layer_and_none_stay_behind():
    layers, x = stack(3, values=modular.ValueResidual), drawn(T, D)
    factors = [torch.tensor([0.3, 0.9]).double(), torch.tensor([-0.5, 2.0]).double()]
    for layer, own in zip(layers[1:], factors, strict=True):
        layer.attention.values.factors.data = own
    assert not [*layers[0].attention.values.parameters()]
    first = layers[0].attention.v_proj(x).unflatten(-1, (H, K))
    inputs = [x, 2 * x, -x]
    for n, layer in enumerate(layers):
        read, module = inputs[n], layer.attention
        found = module(read[None], read[None], causal(), NO_POSITION, SelfAttentionCache())[0]
        mixed = {} if n == 0 else {"values": lambda own, n=n: factors[n - 1][0] * first + factors[n - 1][1] * own}
        assert_close(found, by_hand(module, read, causal(), **mixed))
    assert layers[0].attention.values.carried.values is None
