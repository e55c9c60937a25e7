"""Product-key memory against a search through all of its values."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from etude.model.memory import ProductKeyMemory

from .conftest import drawn, jitter

D, SIZES = 6, {"d_model": 6, "heads": 2, "keys": 5, "key_size": 8, "neighbours": 3, "eps": 1e-5}


def test_each_head_reads_the_values_with_the_best_sums_of_two_keys():
    torch.manual_seed(5)
    memory, x = jitter(ProductKeyMemory(**SIZES).double()), drawn(2, 3, D)
    expected = torch.zeros(6, D).double()
    for n, row in enumerate(x.view(6, D)):
        for h, query in enumerate(memory.query_proj(row).view(2, 2, 4)):
            one, other = (F.layer_norm(half, (4,), memory.norm.weight, memory.norm.bias, 1e-5) for half in query)
            scores = torch.stack([one @ a + other @ b for a in memory.keys[h, 0] for b in memory.keys[h, 1]])
            best = sorted(range(25), key=lambda v, scores=scores: -scores[v])[:3]
            weights = scores[best].exp() / scores[best].exp().sum()
            expected[n] += sum(w * memory.values[v] for w, v in zip(weights, best, strict=True))
    assert_close(memory(x), expected.view(2, 3, D))


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        ({"key_size": 7}, "must be even, not 7"),
        ({"neighbours": 6}, "neighbours=6 of keys=5"),
        ({"neighbours": 0}, "0 of"),
    ],
)
def test_halves_that_are_none_and_neighbours_that_are_not_there_are_refused(size, sentence):
    with pytest.raises(ValueError, match=sentence):
        ProductKeyMemory(**SIZES | size)
