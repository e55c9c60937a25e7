"""What must hold for every variation of the model, whichever axes it comes from."""

import pytest
import torch
from torch.testing import assert_close

from etude.data.tokenizer import PAD


def test_future_target_tokens_do_not_change_past_logits(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    before = model(source, mask, target)
    changed = target.clone()
    changed[:, 3:] = (target[:, 3:] + 5) % 40
    after = model(source, mask, changed)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3:], after[:, 3:])


def test_what_stands_in_the_padding_does_not_matter(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    garbage = torch.where(mask, source, 17)
    assert torch.equal(model(source, mask, target), model(garbage, mask, target))


def test_more_padding_does_not_matter(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    wider = torch.nn.functional.pad(source, (0, 4), value=PAD)
    wider_mask = torch.nn.functional.pad(mask, (0, 4), value=False)
    assert_close(model(wider, wider_mask, target), model(source, mask, target), atol=1e-5, rtol=1e-5)


def test_padding_behind_a_target_does_not_matter(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    longer = torch.nn.functional.pad(target, (0, 3), value=PAD)
    assert_close(model(source, mask, longer)[:, :5], model(source, mask, target), atol=1e-5, rtol=1e-5)


def test_a_wholly_padded_source_is_finite_and_leaves_the_others_alone(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    blank = mask.clone()
    blank[1] = False
    logits = model(source, blank, target)
    logits.logsumexp(-1).sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    assert_close(logits[[0, 2]], model(source, mask, target)[[0, 2]])


def test_the_order_of_a_batch_does_not_matter(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    order = torch.tensor([2, 0, 1])
    assert_close(model(source[order], mask[order], target[order]), model(source, mask, target)[order])


def test_decoding_step_by_step_equals_decoding_at_once(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    whole = model(source, mask, target)
    state = model.start(source, mask)
    for step in range(target.size(1)):
        assert_close(model.step(target[:, step], state), whole[:, step], atol=1e-5, rtol=1e-5)


def test_selected_rows_go_on_as_if_they_had_always_stood_there(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    rows = torch.tensor([2, 0, 0])
    state = model.start(source, mask)
    model.step(target[:, 0], state)
    state.select(rows)
    logits = model.step(target[rows, 1], state)
    assert_close(logits, model(source, mask, target)[rows, 1], atol=1e-5, rtol=1e-5)


def test_every_parameter_gets_a_gradient_that_is_finite(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    model.train()
    model(source, mask, target).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_gradients_match_finite_differences(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation).double(), sentences
    weights = torch.randn(3, 5, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def value() -> torch.Tensor:
        return (model(source, mask, target).log_softmax(-1) * weights).sum()

    value().backward()
    step = 1e-6
    for name, parameter in model.named_parameters():
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        place = int(gradient.abs().argmax())
        with torch.no_grad():
            flat[place] += step
            above = value()
            flat[place] -= 2 * step
            below = value()
            flat[place] += step
        assert_close((above - below) / (2 * step), gradient[place], rtol=1e-4, atol=1e-5, msg=name)


def test_evaluation_draws_nothing_at_random(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation), sentences
    assert torch.equal(model(source, mask, target), model(source, mask, target))


def test_training_draws_dropout_from_the_seed(tiny, sentences, variation):
    model, (source, mask, target) = tiny(variation).train(), sentences

    def logits(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return model(source, mask, target)

    assert torch.equal(logits(1), logits(1))
    assert not torch.equal(logits(1), logits(2))


@pytest.mark.parametrize(("heads", "d_k", "d_v"), [(1, "null", "null"), (4, 3, 5), (8, 2, "null"), (3, 4, 4)])
def test_heads_and_their_sizes_are_free_of_d_model(tiny, sentences, heads, d_k, d_v):
    model = tiny(f"model.heads={heads}", f"model.d_k={d_k}", f"model.d_v={d_v}")
    assert model(*sentences).shape == (3, 5, 40)
