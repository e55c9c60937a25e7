"""The formulas against what PyTorch's counter counts, and parameters against those that are built."""

from functools import cache

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.decoding.beam import BeamSearch
from etude.tasks import build
from etude.tasks.size import Size, measure_size

PIECES, B, S, T = 200, 2, 3, 2
STEPS = S + 3  # of decoding: more than a window, of four on either side
SMALL = ["model.d_model=32", "model.d_ff=48", "model.heads=4", "model.n_layers=2", f"data.vocab_size={PIECES}"]


@cache
def config_of(*overrides: str) -> dict:
    return resolve(compose([*SMALL, *overrides]))


def plain(*overrides: str) -> torch.nn.Module:
    """Built with attention step by step: PyTorch's counter does not see into its fused kernel on a processor."""
    return build.model(config_of(*(o for o in overrides if not o.startswith("model/backend"))), PIECES)


def counted(model: torch.nn.Module) -> int:
    """A forward and a backward pass.

    Where a convolution has groups, three forward passes: PyTorch 2.13 counts the gradient of its weights as if it had
    one group.
    """
    model.train()
    grouped = any(getattr(part, "groups", 1) > 1 for part in model.modules())
    source, target = torch.randint(4, PIECES, (B, S)), torch.randint(4, PIECES, (B, T))
    with FlopCounterMode(display=False) as counter:
        logits = model(source, torch.ones_like(source, dtype=torch.bool), target)
        forward = counter.get_total_flops()
        logits.sum().backward()
    return 3 * forward if grouped else counter.get_total_flops()


def test_every_variation_has_as_many_parameters_and_takes_in_training_and_decoding_what_the_formula_says(variation):
    size, built = measure_size(config_of(*variation)), build.model(config_of(*variation), PIECES)
    assert size.parameters == sum(weight.numel() for weight in built.parameters())
    model = plain(*variation)
    assert B * size.training_flops(S, T) == pytest.approx(counted(model), rel=0.001)
    check_decoding(size, model, beam=3)


@pytest.mark.parametrize("overrides", [["model.d_k=3"], ["model.d_v=5"], ["model.n_layers=1"], ["model.n_layers=5"]])
def test_and_so_does_a_training_step_of_every_size(overrides):
    size = measure_size(config_of(*overrides))
    assert B * size.training_flops(S, T) == pytest.approx(counted(plain(*overrides)), rel=0.001)


def test_a_separable_convolution_takes_three_forward_passes():
    parts = ("encoder", "decoder")
    overrides = [*(f"model/{p}=convolution" for p in parts), *(f"model.{p}.separable=true" for p in parts)]
    assert B * measure_size(config_of(*overrides)).training_flops(S, T) == counted(plain(*overrides))


class Endless(torch.nn.Module):
    """A model that never says that a sentence ends, so that decoding goes as far as it may."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def start(self, source: torch.Tensor, mask: torch.Tensor):
        return self.model.start(source, mask)

    def step(self, tokens: torch.Tensor, state) -> torch.Tensor:
        logits = self.model.step(tokens, state)
        logits[:, 2] -= 1e4
        return logits


def check_decoding(size: Size, model: torch.nn.Module, beam: int) -> None:
    source = torch.randint(4, PIECES, (B, S))
    search = BeamSearch(beam=beam, alpha=0.6, max_len_offset=STEPS - S)
    with FlopCounterMode(display=False) as counter:
        search(Endless(model.eval()), source, torch.ones_like(source, dtype=torch.bool))
    formula = B * size.decoding_flops(S, STEPS, beam)
    assert formula == pytest.approx(counter.get_total_flops(), rel=0.001)


@pytest.mark.parametrize(
    ("choices", "beam"),
    [([], 1), ([], 2), ([], 8), (["model/decoder=recurrent"], 8), (["model/decoder=convolution"], 8)],
)
def test_and_so_does_decoding_with_every_beam(choices, beam):
    check_decoding(measure_size(config_of(*choices)), plain(*choices), beam)


@pytest.mark.parametrize("overrides", [["model.n_layers=1"], ["model.n_layers=5"], ["model.d_k=3", "model.d_v=5"]])
def test_and_so_does_decoding_with_every_size(overrides):
    check_decoding(measure_size(config_of(*overrides)), plain(*overrides), beam=3)


def test_the_base_model_at_full_scale_takes_six_operations_a_weight_and_token_and_a_little_for_attention():
    config = resolve(compose(["scale=full", "data.vocab_size=37000"]))
    of_model = measure_size(config)
    rule = 6 * 25 * (of_model.source_weights + of_model.target_weights)
    assert rule < of_model.training_flops(25, 25) < 1.02 * rule
