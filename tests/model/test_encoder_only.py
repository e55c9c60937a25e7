"""An encoder alone, against PyTorch's with its weights."""

import pytest
import torch
from tests.variations import variations
from torch import nn

ALONE = ("model=encoder_only", "task=masked_language_modelling")


def test_it_is_the_encoder_of_pytorch_between_embedding_and_logits(jittered, pytorchs, sentences):
    model = jittered(*ALONE, "model.attention_bias=true")
    source, mask, _ = sentences
    x = model.encoder.position.add_to_embedding(model.embedding.source(source), 0)
    for layer in model.encoder.layers:
        x = pytorchs(layer, pre=False)(x, src_key_padding_mask=~mask)
    expected = x @ model.embedding.output_table.weight.T
    torch.testing.assert_close(model(source, mask, source)[mask], expected[mask], rtol=1e-4, atol=1e-4)


def test_logits_are_those_of_the_first_places_and_nobody_reads_the_target(jittered, sentences):
    model = jittered(*ALONE)
    source, mask, target = sentences
    whole = model(source, mask, source)
    torch.testing.assert_close(model(source, mask, target), whole[:, : target.size(1)])
    torch.testing.assert_close(model(source, mask, torch.zeros_like(target)), whole[:, : target.size(1)])


@pytest.mark.parametrize("encoder", [one for one in variations("encoder") if not one.endswith("=funnel")])
def test_padding_changes_nothing(jittered, sentences, encoder):
    """A funnel is refused: it has no answer at each token."""
    model = jittered(*ALONE, encoder)
    source, mask, _ = sentences
    longer = nn.functional.pad(source, (0, 3), value=9)
    torch.testing.assert_close(
        model(longer, nn.functional.pad(mask, (0, 3)), source)[mask], model(source, mask, source)[mask]
    )
