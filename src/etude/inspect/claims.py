"""Checks that every part of a model must pass, also run on the parts in a user's own `conf` folder."""

from pathlib import Path

import torch
from torch.testing import assert_close

from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.model.encoder_decoder import EncoderDecoder
from etude.studies.axes import axes
from etude.tasks import build


def own_parts() -> list[str]:
    """List the overrides that choose each model part with a config file in the working directory's `conf` folder."""
    chosen = [(axis, value) for axis in axes() if f"{axis.group}/".startswith("model/") for value in axis.values]
    own = [(axis, value) for axis, value in chosen if (Path.cwd() / "conf" / axis.group / f"{value}.yaml").is_file()]
    return [f"{axis.needs} {axis.group}={value}".strip() for axis, value in own]


@torch.no_grad()
def check_claims(overrides: str) -> None:
    """Check a model: later target tokens and padding have no influence, and decoding by steps equals one forward pass.

    Raises:
        AssertionError: one of the three does not hold.
    """
    model = _build_jittered(overrides)
    source, target = torch.randint(4, 40, (2, 9)), torch.randint(4, 40, (2, 9))
    mask = torch.arange(9) < torch.tensor([[9], [6]])
    whole = model(source, mask, target)

    def expect(logits: torch.Tensor, expected: torch.Tensor, claim: str) -> None:
        assert_close(logits, expected, msg=lambda why: f"{overrides}: {claim}: {why}")

    later = torch.where(torch.arange(9) < 5, target, (target + 5) % 40)
    expect(model(source, mask, later)[:, :5], whole[:, :5], "a later token of the target changes what comes before it")
    expect(model(torch.where(mask, source, 17), mask, target), whole, "what stands in the padding changes the answer")
    state = model.start(source, mask)
    for place in range(9):
        expect(
            model.step(target[:, place], state), whole[:, place], "token by token, it answers otherwise than at once"
        )


def _build_jittered(overrides: str) -> EncoderDecoder:
    """Build the model in float64 with noise on its weights: biases of zero or closed gates would hide errors."""
    model = build.model(resolve_valid(compose(overrides.split())), vocab_size=40).double().eval()
    for weight in model.parameters():
        weight.add_(0.1 * torch.randn_like(weight))
    return model
