"""What must hold for every variation of the model, whichever axes it comes from.

`model` is a tiny one of the variation with jittered weights, `exact` the same in float64, where what is equal but for
rounding is equal to seven digits. The sentences are longer than a window of local attention.
"""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from etude.data.tokenizer import PAD
from etude.decoding.beam import BeamSearch
from etude.tasks.claims import check_left_to_right
from etude.training.before import _TOLERANCE

from .conftest import VOCABULARY, options


@pytest.fixture
def sentences(longer_sentences):
    """Source (3, 12) with 12, 7 and 1 real tokens, its mask, and target_in (3, 9)."""
    return longer_sentences


@pytest.fixture
def exact(model):
    return model.double()


def gradients(loss, parameters):
    return torch.autograd.grad(loss, list(parameters), retain_graph=True, allow_unused=True, materialize_grads=True)


def test_the_source_and_earlier_tokens_are_all_that_is_read_step_by_step_as_at_once(model, sentences):
    """In single precision as nearly as is asked of parts of one's own before a run, in double but for rounding."""
    torch.manual_seed(0)
    check_left_to_right(model, VOCABULARY, tolerance=_TOLERANCE)
    exact, (source, mask, target) = model.double(), sentences
    check_left_to_right(exact, VOCABULARY, length=12)
    assert not torch.equal(exact(source, mask, (target + 5) % 40), exact(source, mask, target)), "no target is read"


def test_a_sentence_gets_alone_what_it_gets_beside_others_in_any_order_and_before_any_padding(exact, sentences):
    source, mask, target = sentences
    order = [2, 0, 1]
    wider, wider_mask = F.pad(source[order], (0, 4), value=PAD), F.pad(mask[order], (0, 4), value=False)
    together = exact(wider, wider_mask, F.pad(target[order], (0, 3), value=PAD))
    for place, row in enumerate(order):
        one, length = slice(row, row + 1), int(mask[row].sum())
        alone = exact(source[one, :length], mask[one, :length], target[one])
        assert_close(together[place : place + 1, :9], alone)


def test_a_wholly_padded_source_is_finite_and_leaves_the_others_and_what_they_teach_alone(exact, sentences):
    source, mask, target = sentences
    blank = mask.clone()
    blank[1] = False
    with_blank, without = exact(source, blank, target), exact(source, mask, target)
    assert with_blank.isfinite().all()
    assert_close(with_blank[[0, 2]], without[[0, 2]])
    of_all, *of_others = (
        gradients(logits.logsumexp(-1).sum(), exact.parameters())
        for logits in (with_blank, with_blank[[0, 2]], without[[0, 2]])
    )
    assert all(gradient.isfinite().all() for gradient in of_all)
    assert_close(*of_others)


def test_selected_rows_go_on_as_if_they_had_always_stood_there(exact, sentences):
    source, mask, target = sentences
    state = exact.start(source, mask)
    exact.step(target[:, 0], state)
    for length, rows in enumerate(([2, 0, 0], [1, 1, 0, 2], [3, 0]), start=1):  # one more beam, one sentence less
        state.reorder(torch.tensor(rows))
        source, mask, target = source[rows], mask[rows], target[rows]
        logits = exact.step(target[:, length], state)
        assert_close(logits, exact(source, mask, target[:, : length + 1])[:, length])


def test_after_a_search_every_parameter_gets_a_gradient_that_is_finite(model, sentences):
    """The search computes in inference mode, whose tensors may take no part in training."""
    BeamSearch(beam=2, alpha=0.6, max_len_offset=2)(model, *sentences[:2])
    model.train()(*sentences).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_gradients_match_finite_differences(exact, sentences):
    generator = torch.Generator().manual_seed(3)
    weights = torch.randn(3, 9, 40, dtype=torch.float64, generator=generator)
    parameters = list(exact.parameters())

    def value() -> torch.Tensor:
        return (exact(*sentences).log_softmax(-1) * weights).sum()

    slopes = gradients(value(), parameters)
    step = 1e-8  # so small that hardly a ReLU changes its side meanwhile
    for _ in range(4):  # along a direction that moves every weight at once, no gradient can be wrong unseen
        direction = [torch.randn(p.shape, dtype=torch.float64, generator=generator) for p in parameters]
        expected = sum((slope * along).sum() for slope, along in zip(slopes, direction, strict=True))
        with torch.no_grad():
            torch._foreach_add_(parameters, direction, alpha=step)
            above = value()
            torch._foreach_add_(parameters, direction, alpha=-2 * step)
            below = value()
            torch._foreach_add_(parameters, direction, alpha=step)
        assert_close((above - below) / (2 * step), expected, rtol=1e-5, atol=1e-4)


def test_training_draws_dropout_from_the_seed(model, sentences):
    model.train()

    def logits(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return model(*sentences)

    assert torch.equal(logits(1), logits(1))
    assert not torch.equal(logits(1), logits(2))


def test_more_digits_give_the_same_logits_and_half_as_many_nearly(model, sentences):
    single = model(*sentences)
    with torch.autocast("cpu", torch.bfloat16):
        half = model(*sentences)
    for gradient in gradients(half.float().logsumexp(-1).sum(), model.parameters()):
        assert gradient.isfinite().all()
    assert ((half - single).norm() / single.norm()).item() < 0.05
    double = model.double()(*sentences)
    assert double.dtype == torch.float64
    assert_close(single.double(), double, atol=1e-4, rtol=1e-4)


def test_a_model_is_its_saved_weights(model, jittered, variation, sentences):
    other = jittered(variation)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(*sentences), model(*sentences))


@pytest.mark.parametrize(("heads", "d_k", "d_v"), [(1, "null", "null"), (4, 3, 5), (8, 2, "null"), (3, 4, 4)])
def test_heads_and_their_sizes_are_free_of_d_model(tiny, sentences, heads, d_k, d_v):
    model = tiny(f"model.heads={heads}", f"model.d_k={d_k}", f"model.d_v={d_v}")
    assert model(*sentences).shape == (3, 9, 40)


@pytest.mark.parametrize("part", [*options("position"), *options("scale")])
def test_what_counts_the_heads_counts_those_of_attention(tiny, sentences, part):
    model = tiny(part, "model.heads=4", "model.attention.heads=2")
    assert model(*sentences).shape == (3, 9, 40)
