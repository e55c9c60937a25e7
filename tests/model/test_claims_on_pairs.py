"""The claims that two variations could break together though each keeps them alone."""

import pytest
import torch
from torch.testing import assert_close

from etude.errors import UserError
from etude.model.attention import MultiHeadAttention
from etude.model.backend import Sdpa

CONVOLUTIONS = ("lightweight_convolution", "dynamic_convolution")
ON_SCORES = ("alibi", "shaw", "t5", "rope", "partial_rope", "rope_in_some_layers")
EXCLUDING = [  # what adds to scores where there are none, and an alignment with nothing to look at
    *({f"model/position={p}", f"model/attention={c}"} for p in ON_SCORES for c in CONVOLUTIONS),
    *({f"model/position={position}", "model/attention=linear"} for position in ("alibi", "shaw", "t5")),
    {"model/encoder=none", "model/decoder=recurrent"},
    *(
        {of_some_layers, f"model/{stack}={kind}"}  # of which a stack has one
        for of_some_layers in ("model/position=rope_in_some_layers", "model/feedforward=switch")
        for stack in ("encoder", "decoder")
        for kind in ("shared", "universal")
    ),
    {"model/init=fixup", "model/feedforward=product_key_memory"},
    *(
        {"model/init=fixup", f"model/{stack}={kind}"}  # whose branches it does not know
        for stack in ("encoder", "decoder")
        for kind in ("evolved", "convolution")
    ),
]


@pytest.fixture
def model(jittered, pair):
    """The jittered model of both variations; where they exclude each other there is none."""
    try:
        return jittered(*pair).double()
    except UserError as refusal:
        assert {"model/residual=rezero", "model/residual=fixup"} & {*pair} or {*pair} in EXCLUDING, (
            "no other two of ours exclude each other"
        )
        pytest.skip(str(refusal))


def test_two_variations_keep_the_claims_together(model, longer_sentences):
    source, mask, target = longer_sentences
    whole = model(source, mask, target)

    weights = dict(model.named_parameters())
    gradients = torch.autograd.grad(whole.logsumexp(-1).sum(), [*weights.values()], allow_unused=True)
    unused = [name for name, gradient in zip(weights, gradients, strict=True) if gradient is None]
    assert not unused, "weights without a gradient, over which several processes would stop"

    changed = target.clone()
    changed[:, 3:] = (target[:, 3:] + 5) % 40
    assert torch.equal(model(source, mask, changed)[:, :3], whole[:, :3]), "the future is seen"

    garbage = torch.where(mask, source, 17)
    assert torch.equal(model(garbage, mask, target), whole), "padding is seen"

    state = model.start(source, mask)
    for step in range(target.size(1)):
        assert_close(model.step(target[:, step], state), whole[:, step], msg="cached decoding")

    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            part.backend = Sdpa(dropout=0.0)
    assert_close(model(source, mask, target), whole, msg="another backend")
