"""Synthesizers against the equations of their paper, one head and one query at a time."""

import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from etude.model import synthesizer
from etude.model.attention import split_heads
from etude.model.backend import Eager
from etude.model.cache import SelfAttentionCache
from etude.model.position import Alibi
from etude.model.scale import SqrtDk

from .conftest import drawn, jitter

D, H, K, L, T, R = 6, 2, 4, 9, 7, 3
SCORES = {
    "dense": partial(synthesizer.DenseScores, d_k=K, max_length=L),
    "random": partial(synthesizer.RandomScores, heads=H, max_length=L),
    "factorized": partial(synthesizer.FactorizedScores, heads=H, rank=R, max_length=L),
}
MIXES = {"alone": synthesizer.Alone, "sum": synthesizer.Sum, "alpha": synthesizer.Alpha}


def attention(scores: str, mix: str, *, is_cross: bool = False) -> synthesizer.Synthesizer:
    torch.manual_seed(5)
    sizes = {"d_model": D, "heads": H, "d_k": K, "d_v": K, "cross_heads": 3, "cross_d_k": 2, "cross_d_v": 1}
    parts = {"scores": SCORES[scores], "mix": MIXES[mix]}
    made = synthesizer.Synthesizer(SqrtDk(d_k=K), Eager(dropout=0.0), is_cross, **sizes, bias=True, **parts)
    return jitter(made.double())


def score(module, scores: str, mix: str, x, h: int, t: int, s: int):
    """The score of a query and a key, as the paper writes each kind."""
    q, k = (split_heads(part(x)[None], H)[0, h] for part in (module.q_proj, module.k_proj))
    made = {
        "dense": lambda: module.scores.proj.weight[s] @ q[t].clamp(min=0),
        "random": lambda: module.scores.table[h, t, s],
        "factorized": lambda: sum(module.scores.rows[h, t, r] * module.scores.columns[h, s, r] for r in range(R)),
    }[scores]()
    mixed = {
        "alone": lambda: made,
        "sum": lambda: q[t] @ k[s] / math.sqrt(K) + made,
        "alpha": lambda: (1 - (a := module.mix.weight.sigmoid())) * (q[t] @ k[s]) / math.sqrt(K) + a * made,
    }
    return mixed[mix]()


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("scores", SCORES)
def test_every_query_and_head_weighs_values_by_their_scores_and_a_step_as_all_at_once(scores, mix):
    module, x, position = attention(scores, mix), drawn(T, D), Alibi(True, heads=H).double()
    whole = module(x[None], x[None], torch.ones(T, T, dtype=torch.bool).tril(), position)
    cache = SelfAttentionCache()
    steps = [
        module(x[None, t : t + 1], x[None, t : t + 1], torch.ones(1, t + 1, dtype=torch.bool), position, cache)
        for t in range(T)
    ]
    assert_close(torch.cat(steps, dim=1), whole)
    values = module.v_proj(x).unflatten(-1, (H, K))
    rows = []
    for t in range(T):
        powers = [
            [score(module, scores, mix, x, h, t, s) - position.slopes[h] * (t - s) for s in range(t + 1)]
            for h in range(H)
        ]
        rows.append(torch.cat([torch.stack(row).softmax(0) @ values[: t + 1, h] for h, row in enumerate(powers)]))
    assert_close(whole[0], module.out_proj(torch.stack(rows)))


@pytest.mark.parametrize(
    ("scores", "mix", "there"),
    [("dense", "alone", "qv"), ("random", "alone", "v"), ("random", "sum", "qkv"), ("factorized", "alone", "v")],
)
def test_what_scores_do_not_use_has_no_projection(scores, mix, there):
    module = attention(scores, mix)
    assert [part for part in "qkv" if [*module.get_submodule(f"{part}_proj").parameters()]] == [*there]


def test_attention_to_the_encoder_has_queries_keys_sizes_and_a_scale_of_its_own():
    across = attention("random", "alone", is_cross=True)
    assert across.scale.factor == 2**-0.5
    assert {name: tuple(part.weight.shape) for name, part in across.named_children() if "proj" in name} == {
        "q_proj": (6, D),
        "k_proj": (6, D),
        "v_proj": (3, D),
        "out_proj": (D, 3),
    }


@pytest.mark.parametrize("scores", SCORES)
def test_a_text_beyond_the_scores_is_refused(scores):
    x = drawn(1, L + 1, D)
    with pytest.raises(ValueError, match=r"10 positions .* end at 9: raise model\.attention\.scores\.max_length"):
        attention(scores, "sum")(x, x, torch.ones(1, dtype=torch.bool), Alibi(True, heads=H).double())


@pytest.mark.parametrize("scores", ["random", "factorized"])
def test_learned_scores_are_as_large_at_first_as_a_matrix_of_their_size_says(scores):
    made = SCORES[scores](max_length=64) if scores == "random" else SCORES[scores](max_length=64, rank=32)
    found = made(torch.zeros(1, H, 64, K), 64, 0)
    assert found.std().item() == pytest.approx(1 / 8, rel=0.1)
