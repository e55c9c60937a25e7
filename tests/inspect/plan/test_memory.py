"""The formula for memory against what autograd really keeps."""

import pytest
import torch
from torch import Tensor

from etude.config.compose import compose
from etude.config.identity import resolve
from etude.tasks import build
from etude.tasks.size import measure_size

CASES = [
    ["scale=pocket"],
    ["scale=small"],
    ["scale=full"],
    ["scale=small", "model=big"],
    ["scale=small", "model.dropout=0.0"],
    ["scale=small", "model.attention_dropout=0.1"],
    ["scale=small", "model.heads=32"],
    ["scale=small", "model/residual=pre"],
    ["scale=small", "model/feedforward=swiglu"],
    ["scale=small", "model/attention=grouped_query"],
    ["scale=small", "model/position=rope"],
    ["scale=small", "model/position=learned"],
    ["scale=small", "model/norm=rms"],
]


def kept(config: dict, sentences: int, source: int, target: int) -> int:
    """Bytes behind the tensors that a forward pass saves, without parameters and logits."""
    model = build.model(config, 500).train()
    known = {weight.untyped_storage()._cdata for weight in (*model.parameters(), *model.buffers())}
    tensors: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        tensors.setdefault(tensor.untyped_storage()._cdata, tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        sources, targets = torch.zeros(sentences, source).long(), torch.zeros(sentences, target).long()
        model.hidden(sources, torch.ones(sentences, source).bool(), targets)
    return sum(tensor.untyped_storage().nbytes() for key, tensor in tensors.items() if key not in known)


@pytest.mark.parametrize("overrides", CASES, ids=" ".join)
@pytest.mark.parametrize("lengths", [(25, 25), (40, 15)])
def test_what_the_layers_keep_is_what_the_formula_says_within_fifteen_percent(overrides, lengths):
    config = resolve(compose(overrides))
    formula = 8 * measure_size(config).saved_bytes(*lengths)
    assert formula == pytest.approx(kept(config, 8, *lengths), rel=0.15)
