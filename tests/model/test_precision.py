"""What half precision is for, and where it is not."""

import pytest
import torch

from etude.model.precision import autocast

PROCESSOR = torch.device("cpu")


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed", "32-true"])
def test_products_are_rounded_as_the_precision_says_if_the_processor_has_units_for_it(precision, has_bf16):
    rounded = torch.bfloat16 if precision == "bf16-mixed" and has_bf16 else torch.float32
    with autocast(precision, PROCESSOR):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == rounded


@pytest.mark.parametrize("has_bf16", [True], indirect=True)
def test_evaluation_in_mixed_precision_is_what_lightning_validates_with(tiny, sentences, has_bf16):
    from lightning.pytorch.plugins.precision import MixedPrecision

    model = tiny()
    with autocast("bf16-mixed", PROCESSOR), torch.no_grad():
        ours = model(*sentences)
    with MixedPrecision("bf16-mixed", "cpu").val_step_context(), torch.no_grad():
        assert torch.equal(model(*sentences), ours)
