"""What half precision is for, and where it is not."""

import pytest
import torch

from etude.model.precision import autocast

PROCESSOR = torch.device("cpu")


@pytest.fixture
def has_bf16(monkeypatch):
    """A processor with units for it, whatever this one has: it is slow then, and the same."""
    monkeypatch.setattr("etude.model.precision._processor_has_bf16", lambda: True)


@pytest.mark.parametrize(("precision", "rounded"), [("bf16-mixed", torch.bfloat16), ("32-true", torch.float32)])
def test_products_are_rounded_as_the_precision_says(precision, rounded, has_bf16):
    with autocast(precision, PROCESSOR):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == rounded


def test_evaluation_in_mixed_precision_is_what_lightning_validates_with(tiny, sentences, has_bf16):
    from lightning.pytorch.plugins.precision import MixedPrecision

    model = tiny()
    with autocast("bf16-mixed", PROCESSOR), torch.no_grad():
        ours = model(*sentences)
    with MixedPrecision("bf16-mixed", "cpu").val_step_context(), torch.no_grad():
        assert torch.equal(model(*sentences), ours)


@pytest.mark.parametrize(("precision", "has_bf16"), [("bf16-mixed", False), ("16-mixed", True)])
def test_a_processor_without_units_for_it_computes_as_the_weights_are(precision, has_bf16, monkeypatch):
    monkeypatch.setattr("etude.model.precision._processor_has_bf16", lambda: has_bf16)
    with autocast(precision, PROCESSOR):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
