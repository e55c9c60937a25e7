"""What parts of the user's own promise, checked on small random tensors.

The test that `etude init` writes calls `check_claims`; a run with such parts is checked once before its first step.
"""

import io
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.data.tokenizer import BOS, EOS, PAD, UNK
from etude.study.axes import axes
from etude.tasks import build

LENGTH = 9  # tokens of a sentence
_FIRST = 1 + max(PAD, BOS, EOS, UNK)  # the first token that is not a special one
_SIZE = 4  # the largest of a small weight
_PLAIN = {str, int, float, bool, type(None), Tensor, nn.Parameter}

Named = tuple[str, Tensor]


class BrokenClaim(AssertionError):  # noqa: N818
    """A part does not do what it promises; the message says what."""


def own_parts() -> list[str]:
    """List the overrides that choose each model part with a config file in the working directory's `conf` folder."""
    chosen = [(axis, value) for axis in axes() if f"{axis.group}/".startswith("model/") for value in axis.values]
    own = [(axis, value) for axis, value in chosen if (Path.cwd() / "conf" / axis.group / f"{value}.yaml").is_file()]
    return [f"{axis.needs} {axis.group}={value}".strip() for axis, value in own]


def check_claims(overrides: str) -> None:
    """Check the model that some overrides choose, as `check_left_to_right` does.

    Raises:
        BrokenClaim: a claim does not hold.
    """
    model = build.model(resolve_valid(compose(overrides.split())), vocab_size=40).eval()
    with torch.no_grad():
        model(*random_pairs(model, 40, LENGTH))  # as it is trained: not all that works in float64 does
    add_noise(model.double(), 0.1)
    try:
        check_left_to_right(model, vocab_size=40)
    except BrokenClaim as broken:
        raise BrokenClaim(f"{overrides}: {broken}") from None


@torch.no_grad()
def check_left_to_right(model: Any, vocab_size: int, *, length: int = LENGTH, tolerance: float = 1e-7) -> None:
    """Check that later target tokens and padding have no influence, and that decoding by steps equals one forward pass.

    Decoding is checked with its hypotheses in one order, and with the cache reordered between the steps.

    Args:
        model: in evaluation mode.
        vocab_size: V; the tokens are drawn from it by PyTorch's generator.
        length: S and T of the two sentences.
        tolerance: the largest difference allowed, as a share of the largest logit.

    Raises:
        BrokenClaim: one of these does not hold, or the model gives other numbers each time, or infinite ones.
    """
    source, mask, target = random_pairs(model, vocab_size, length)
    whole = model(source, mask, target)
    allowed = tolerance * float(whole.abs().max())

    def expect(logits: Tensor, expected: Tensor, claim: str) -> None:
        if not (change := float((logits - expected).abs().max())) <= allowed:
            raise BrokenClaim(f"{claim} (a logit changes by {change:.2g}, the largest is {allowed / tolerance:.2g})")

    if not whole.isfinite().all():
        raise BrokenClaim(
            "some logits are not finite numbers; a weight that `reset_parameters` does not fill is anything"
        )
    if not torch.equal(whole, model(source, mask, target)):
        raise BrokenClaim("it gives other numbers each time in evaluation mode; draw at random only `if self.training`")
    half, place = length // 2, torch.arange(length, device=source.device)
    later = torch.where(place < half, target, _next(target, vocab_size))
    claim = "a later token of the target changes what comes before it"
    expect(model(source, mask, later)[:, :half], whole[:, :half], claim)
    padded = torch.where(mask, source, _next(source, vocab_size))
    expect(model(padded, mask, target), whole, "what stands in the padding changes the answer")
    rows = torch.arange(2, device=source.device)
    for swapped, claim in (
        (False, "token by token, it answers otherwise than at once"),
        (True, "its cache does not follow its hypotheses; `reorder` must keep the rows it is given"),
    ):
        state, order = model.start(source, mask), rows
        for column in range(length):
            expect(model.step(target[order, column], state), whole[order, column], claim)
            if swapped:
                state.reorder(1 - rows)
                order = 1 - order


def check_resumes(make: Callable[[Sequence[Named]], Optimizer], parameters: Iterable[Named]) -> None:
    """Check that an optimizer calls its closure, and goes on from a checkpoint as it would have without.

    Args:
        make: makes it for named parameters.
        parameters: smaller ones of the same names and dimensions are updated; what fails with them is not told.

    Raises:
        BrokenClaim: it does not call its closure, no checkpoint can hold its state, or its next update is another one.
    """
    weights = {name: nn.Parameter(torch.randn([min(n, _SIZE) for n in one.shape])) for name, one in parameters}
    try:
        optimizer = make([*weights.items()])
        for step in (1, 2):
            _update(optimizer, weights.values(), step)
        check_readable(optimizer.state_dict(), "its state")
        copies = {name: nn.Parameter(weight.detach().clone()) for name, weight in weights.items()}
        resumed = make([*copies.items()])
        resumed.load_state_dict(deepcopy(optimizer.state_dict()))
        _update(optimizer, weights.values(), 3)
        _update(resumed, copies.values(), 3)
    except BrokenClaim:
        raise
    except Exception:  # it may need larger weights, or others
        return
    if any(not torch.equal(weight.nan_to_num(), copies[name].nan_to_num()) for name, weight in weights.items()):
        raise BrokenClaim(
            "after a checkpoint its next update is another one; what it remembers must stand in `self.state` and "
            "`self.param_groups`, which a checkpoint holds"
        )


def _update(optimizer: Optimizer, weights: Iterable[Tensor], step: int) -> None:
    asked = []

    def closure() -> float:
        generator = torch.Generator().manual_seed(step)
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=generator)
        asked.append(step)
        return 1.0 / step

    torch.manual_seed(step)
    optimizer.step(closure)
    if not asked:
        raise BrokenClaim("`step` must call its closure, which computes the gradients")


def check_readable(state: Any, where: str) -> None:
    """Check that a checkpoint with this state could be read again: étude executes nothing in one.

    Args:
        state: a value, or containers of values.
        where: its name.

    Raises:
        BrokenClaim: it could not; the message names the first value in the way.
    """
    if type(state) in _PLAIN:
        return
    if type(state) in (dict, OrderedDict):
        for key, value in state.items():
            check_readable(key, f"{where}: the key {key!r}")
            check_readable(value, f"{where}[{key!r}]")
    elif type(state) in (list, tuple):
        for place, value in enumerate(state):
            check_readable(value, f"{where}[{place}]")
    elif not _is_read_again(state):
        kind = f"{type(state).__module__}.{type(state).__qualname__}"
        raise BrokenClaim(
            f"{where} is a {kind}, with which no checkpoint can be read: keep numbers, texts, tensors, and lists and "
            "dictionaries of them"
        )


def _is_read_again(value: Any) -> bool:
    file = io.BytesIO()
    try:
        torch.save(value, file)
        file.seek(0)
        torch.load(file, weights_only=True)
    except Exception:  # pickle may raise anything, and so may the value
        return False
    return True


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
