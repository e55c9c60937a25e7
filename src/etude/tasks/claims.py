"""What every model that writes a target from left to right promises, checked on a small batch."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from etude.data.tokenizer import BOS, EOS, PAD, UNK
from etude.model.block import DecoderLayer, EncoderLayer
from etude.model.position import Position

_FIRST = 1 + max(PAD, BOS, EOS, UNK)  # the first token that is not a special one
_KEEP_SHAPE = ("attention", "cross_attention", "feedforward")  # parts of a layer
_HOOKS = ("add_to_embedding", "rotate", "score_bias", "for_layers", "at_layer")  # of a position scheme


class BrokenClaim(AssertionError):  # noqa: N818
    """A model does not do what it promises; the message says what."""


@torch.no_grad()
def check_left_to_right(model: Any, vocab_size: int, *, length: int = 9, tolerance: float = 1e-7) -> None:
    """Check that later target tokens and padding have no influence, and that decoding by steps equals one forward pass.

    Args:
        model: in evaluation mode.
        vocab_size: V; the tokens are drawn from it by PyTorch's generator.
        length: S and T of the two sentences.
        tolerance: the largest difference allowed, as a share of the largest logit.

    Raises:
        BrokenClaim: one of the three does not hold.
    """
    source, mask, target = random_pairs(model, vocab_size, length)
    whole = model(source, mask, target)
    allowed = tolerance * float(whole.abs().max())

    def expect(logits: Tensor, expected: Tensor, claim: str) -> None:
        if not (change := float((logits - expected).abs().max())) <= allowed:
            raise BrokenClaim(f"{claim} (a logit changes by {change:.2g}, the largest is {allowed / tolerance:.2g})")

    half, place = length // 2, torch.arange(length, device=source.device)
    later = torch.where(place < half, target, _next(target, vocab_size))
    claim = "a later token of the target changes what comes before it"
    expect(model(source, mask, later)[:, :half], whole[:, :half], claim)
    padded = torch.where(mask, source, _next(source, vocab_size))
    expect(model(padded, mask, target), whole, "what stands in the padding changes the answer")
    state = model.start(source, mask)
    for column in range(length):
        claim = "token by token, it answers otherwise than at once"
        expect(model.step(target[:, column], state), whole[:, column], claim)


@torch.no_grad()
def is_deterministic(model: Any, vocab_size: int, length: int) -> bool:
    """Return whether a model in evaluation mode gives the same logits twice.

    Raises:
        BrokenClaim: some are no finite numbers, of which nothing can be said.
    """
    pairs = random_pairs(model, vocab_size, length)
    once: Tensor = model(*pairs)
    if not once.isfinite().all():
        raise BrokenClaim(
            "some logits are no finite numbers; a weight that `reset_parameters` does not fill is anything"
        )
    return torch.equal(once, model(*pairs))


@torch.no_grad()
def check_rebuilt(model: nn.Module, again: nn.Module, vocab_size: int, *, length: int, tolerance: float) -> None:
    """Check that a model that is built again is the same with the weights of a checkpoint.

    Args:
        model: in evaluation mode, and called before.
        again: the same, built anew.
        vocab_size, length, tolerance: as of `check_left_to_right`.

    Raises:
        BrokenClaim: the weights do not fit, or it computes something else.
    """
    try:
        again.load_state_dict(model.state_dict())
    except RuntimeError as error:
        raise BrokenClaim(
            "once it has been called, its weights do not fit the same model built again: a buffer that changes its "
            f"shape needs register_buffer(..., persistent=False) ({' '.join(str(error).split())})"
        ) from error
    pairs = random_pairs(model, vocab_size, length)
    expected, found = model(*pairs), again(*pairs)
    if not float((found - expected).abs().max()) <= tolerance * float(expected.abs().max()):
        raise BrokenClaim(
            "built again, with the weights of a checkpoint, it answers otherwise: what its constructor draws at random "
            "must be a buffer (register_buffer), and nothing may be kept between two constructions"
        )


@contextmanager
def checked_shapes(model: nn.Module) -> Iterator[None]:
    """Check within the context that the parts of a layer keep the shape of what they are given.

    Raises:
        BrokenClaim: one does not; a residual connection would broadcast some shapes without an error.
    """

    def check(part: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        name, shape = type(part).__name__, tuple(given[0].shape)
        if not isinstance(out, Tensor):
            what = "nothing" if out is None else f"a {type(out).__name__}"
            raise BrokenClaim(f"{name} returns {what}; it must return a tensor of the shape of its input, {shape}")
        if out.shape != given[0].shape:
            raise BrokenClaim(f"{name} returns {tuple(out.shape)} for an input of {shape}; it must keep the shape")

    layers = [layer for layer in model.modules() if isinstance(layer, EncoderLayer | DecoderLayer)]
    parts = [part for layer in layers for name, part in layer.named_children() if name in _KEEP_SHAPE]
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(part.register_forward_hook(check))
        yield


def check_positions(model: nn.Module) -> None:
    """Check that each position scheme of the user's own overrides a method that has an effect.

    Raises:
        BrokenClaim: one does not, and the model would train without positions.
    """
    for kind in {type(part) for part in model.modules() if isinstance(part, Position)}:
        own = not kind.__module__.startswith("etude.")
        if own and all(getattr(kind, hook) is getattr(Position, hook) for hook in _HOOKS):
            what = f"{kind.__name__} overrides none of {', '.join(_HOOKS)}"
            raise BrokenClaim(f"{what}, and does nothing: is one misspelt? model/position=none has no positions")


def weights_without_gradient(model: Any, vocab_size: int, length: int) -> list[str]:
    """Return the names of the trainable weights that the logits of a model do not depend on."""
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    with torch.backends.cudnn.flags(enabled=False):  # whose recurrent layers have no gradients in evaluation mode
        logits = model(*random_pairs(model, vocab_size, length))
        gradients = torch.autograd.grad(logits.sum(), [*weights.values()], allow_unused=True)
    return [name for name, gradient in zip(weights, gradients, strict=True) if gradient is None]


def random_pairs(model: Any, vocab_size: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a source (2, S), the second sentence a third shorter, its mask, and a target (2, T); S = T = `length`."""
    device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
    source, target = (torch.randint(_FIRST, vocab_size, (2, length), device=device) for _ in range(2))
    mask = torch.arange(length, device=device) < torch.tensor([[length], [length - length // 3]], device=device)
    return source, mask, target


def add_noise(model: Any, amount: float) -> None:
    """Add normal noise to all weights: biases of zero or closed gates would hide errors."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(amount * torch.randn_like(weight))


def _next(tokens: Tensor, vocab_size: int) -> Tensor:
    """Replace every token by the next one of the vocabulary, the last one by the first."""
    return (tokens - _FIRST + 1) % (vocab_size - _FIRST) + _FIRST
