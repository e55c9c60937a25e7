"""What half precision is for, and where it is not."""

import pytest
import torch

from etude.model.precision import allow_tf32, autocast

PROCESSOR = torch.device("cpu")


@pytest.mark.parametrize(
    ("precision", "rounded"),
    [("bf16-mixed", torch.bfloat16), ("16-mixed", torch.float16), ("32-true", torch.float32), ("auto", torch.float32)],
)
def test_products_are_rounded_as_the_precision_says(precision, rounded):
    with autocast(precision, PROCESSOR):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == rounded


def test_evaluation_in_mixed_precision_is_what_lightning_validates_with(tiny, sentences):
    from lightning.pytorch.plugins.precision import MixedPrecision

    model = tiny()
    with autocast("bf16-mixed", PROCESSOR), torch.no_grad():
        ours = model(*sentences)
    with MixedPrecision("bf16-mixed", "cpu").val_step_context(), torch.no_grad():
        assert torch.equal(model(*sentences), ours)


@pytest.mark.parametrize("there", [True, False])
def test_tf32_is_for_gpus_alone(there, monkeypatch):
    said = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch, "set_float32_matmul_precision", said.append)
    allow_tf32()
    assert said == ["high"] * there
