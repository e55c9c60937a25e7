"""At a limit of what it can be set to, each of today's parts is the plain part, to rounding."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from .conftest import jitter

MODULAR = ["model/attention=modular", "model/attention/qk_norm=none"]
ROPE = ["model/position=rope"]
PRE = ["model/residual=pre"]
SPAN = [*MODULAR, "model/attention/span=pattern"]
SOME = ["model/position=rope_in_some_layers"]
SWITCH = ["model/feedforward=switch", "model.feedforward.every=1"]
GATED = ["model/feedforward=gated"]


def unchanged(model: nn.Module) -> None:
    """All of the part's own numbers are those of its start."""


def setting(ending: str, value: float | list[float]) -> Callable[[nn.Module], None]:
    def change(model: nn.Module) -> None:
        found = [weight for name, weight in model.named_parameters() if name.endswith(ending)]
        assert found
        for weight in found:
            weight.data.copy_(torch.tensor(value).expand_as(weight))

    return change


def half_open(model: nn.Module) -> None:
    """A gate whose matrix is zero lets half of everything through."""
    setting("gate.proj.weight", 0.0)(model)
    for name, weight in model.named_parameters():
        if name.endswith("attention.out_proj.weight"):
            weight.data.mul_(2)


LIMITS = {  # what the part is at its limit: the plain model, the other, and what is set in it
    "no step of attention": ([], MODULAR, unchanged),
    "a head scale of one": ([], [*MODULAR, "model/attention/gate=scale"], unchanged),
    "a gate of one half, doubled": ([], [*MODULAR, "model/attention/gate=headwise"], half_open),
    "a cap at infinity": ([], [*MODULAR, "model/attention/cap=soft", "model.attention.cap.cap=1e9"], unchanged),
    "a sink of no score": ([], [*MODULAR, "model/attention/sink=learned"], setting("sink.score", -1e4)),
    "a window as long as the text": ([], [*SPAN, "model.attention.span.window=12"], unchanged),
    "a pattern that is global": ([], [*SPAN, "model.attention.span.pattern=[global]"], unchanged),
    "own values alone": ([], [*MODULAR, "model/attention/values=residual"], setting("factors", [0.0, 1.0])),
    "synthetic scores of nothing": ([], ["model/attention=synthesizer"], setting("scores.proj.weight", 0.0)),
    "a share of one": (ROPE, ["model/position=partial_rope", "model.position.share=1.0"], unchanged),
    "positions everywhere": (ROPE, [*SOME, "model.position.pattern=[rope]"], unchanged),
    "positions nowhere": (["model/position=none"], [*SOME, "model.position.pattern=[none]"], unchanged),
    "a layer scale of one": (PRE, ["model/residual=layer_scale", "model.residual.initial_scale=1.0"], unchanged),
    "a share of all numbers": (["model/norm=rms"], ["model/norm=partial_rms", "model.norm.share=1.0"], unchanged),
    "no norm before rezero": (
        ["model/residual=rezero", "model/norm=none"],
        ["model/residual=rezero_pre", "model/norm=none"],
        unchanged,
    ),
    "one stream": (PRE, ["model/residual=hyper", "model.residual.streams=1"], unchanged),
    "one expert": ([], ["model/feedforward=experts", "model.feedforward.experts=1"], unchanged),
    "one expert in every layer": ([], [*SWITCH, "model.feedforward.inside.experts=1"], unchanged),
    "swish with a gate": (["model/feedforward=swiglu"], [*GATED, "model.feedforward.activation=swish"], unchanged),
    "relu by its name": ([], ["model/feedforward=plain", "model.feedforward.activation=relu"], unchanged),
    "logits without a cap": ([], ["model/tying=soft_cap", "model.tying.logit_cap=1e9"], unchanged),
    "the base width": (["model/scale=dk"], ["optimizer=adam_mup", "optimizer.base_width=16"], unchanged),
}
WITHIN = re.compile(
    r"(network\.)?experts\.0\.|(?<=final_norm\.)norm\."
)  # of names: what the part has around the plain one


@pytest.mark.parametrize(("plain", "part", "change"), LIMITS.values(), ids=LIMITS)
def test_at_its_limit_a_part_is_the_plain_one(tiny, longer_sentences, plain, part, change):
    ours, theirs = tiny(*part).double(), jitter(tiny(*plain).double())
    names = {WITHIN.sub("", name): name for name in ours.state_dict()}
    ours.load_state_dict({names[name]: weight for name, weight in theirs.state_dict().items()}, strict=False)
    change(ours)
    assert_close(ours(*longer_sentences), theirs(*longer_sentences))
