"""Checks that every part of a model must pass, also run on the parts in a user's own `conf` folder."""

from pathlib import Path

import torch

from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.studies.axes import axes
from etude.tasks import build
from etude.tasks.claims import BrokenClaim, add_noise, check_left_to_right, is_deterministic, random_pairs


def own_parts() -> list[str]:
    """List the overrides that choose each model part with a config file in the working directory's `conf` folder."""
    chosen = [(axis, value) for axis in axes() if f"{axis.group}/".startswith("model/") for value in axis.values]
    own = [(axis, value) for axis, value in chosen if (Path.cwd() / "conf" / axis.group / f"{value}.yaml").is_file()]
    return [f"{axis.needs} {axis.group}={value}".strip() for axis, value in own]


def check_claims(overrides: str) -> None:
    """Check a model: later target tokens and padding have no influence, and decoding by steps equals one forward pass.

    Raises:
        AssertionError: one of the three does not hold, or the model gives other numbers each time, or infinite ones.
    """
    model = build.model(resolve_valid(compose(overrides.split())), vocab_size=40).eval()
    with torch.no_grad():
        model(*random_pairs(model, vocab_size=40, length=9))  # as it is trained: not all that works in float64 does
    add_noise(model.double(), 0.1)
    try:
        if not is_deterministic(model, vocab_size=40, length=9):
            raise BrokenClaim("it gives other numbers each time in evaluation mode")
        check_left_to_right(model, vocab_size=40)
    except BrokenClaim as broken:
        raise AssertionError(f"{overrides}: {broken}") from None
