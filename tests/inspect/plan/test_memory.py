"""The formula for memory against what autograd really keeps, and what it is put together of."""

import pytest
import torch
from torch import Tensor

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.inspect.plan import memory
from etude.inspect.plan.memory import estimate_peak_memory
from etude.model.chunks import sentences_per_chunk
from etude.model.precision import autocast
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
    ["scale=small", "model/feedforward=gelu"],
    ["scale=small", "model/feedforward=swiglu"],
    ["scale=small", "model/feedforward=squared_relu"],
    ["scale=small", "model/feedforward=plain"],
    ["scale=small", "model/feedforward=gated"],
    ["scale=small", "model/attention=grouped_query"],
    ["scale=small", "model/position=rope"],
    ["scale=small", "model/position=learned"],
    ["scale=small", "model/norm=rms"],
    ["scale=small", "model/norm=dynamic_tanh"],
    ["scale=small", "model/norm=partial_rms"],
    ["scale=small", "model/residual=peri"],
    ["scale=small", "model/residual=rezero_pre"],
    ["scale=small", "model/residual=fixup", "model/norm=none"],
    ["scale=small", "model/residual=layer_scale"],
    ["scale=small", "model/residual=hyper"],
    ["scale=small", "model/residual=sandwich"],
    ["scale=small", "model/scale=cosine"],
    ["scale=small", "model/feedforward=experts"],
    ["scale=small", "model/tying=none_normed"],
    ["scale=small", "model/tying=adaptive_softmax"],
    ["scale=small", "model/tying=mixture_of_softmaxes"],
    ["scale=small", "model/feedforward=normformer"],
    ["scale=small", "model/decoder=parallel", "model/encoder=parallel"],
    ["scale=small", "model/attention=modular"],
    ["scale=small", "model/attention=differential"],
    ["scale=small", "model/attention=latent"],
]


def kept(config: dict, sentences: int, source: int, target: int, precision: str = "32-true") -> int:
    """Bytes behind the tensors that a forward pass saves, without parameters, their halved copies, and logits."""
    model = build.model(config, 500).train()
    known = {weight.untyped_storage()._cdata for weight in (*model.parameters(), *model.buffers())}
    shapes = {shape for weight in model.parameters() for shape in (weight.shape, weight.shape[::-1])}
    tensors: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.dtype == torch.float32 or tensor.shape not in shapes:
            tensors.setdefault(tensor.untyped_storage()._cdata, tensor)
        return tensor

    with (
        autocast(precision, torch.device("cpu")),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
    ):
        sources, targets = torch.zeros(sentences, source).long(), torch.zeros(sentences, target).long()
        model.hidden(sources, torch.ones(sentences, source).bool(), targets)
    return sum(tensor.untyped_storage().nbytes() for key, tensor in tensors.items() if key not in known)


@pytest.mark.parametrize(
    ("overrides", "lengths"),
    [*((overrides, (40, 15)) for overrides in CASES), (["scale=small"], (25, 25))],
    ids=lambda value: " ".join(map(str, value)),
)
def test_what_the_layers_keep_is_what_the_formula_says_within_fifteen_percent(overrides, lengths):
    config = resolve(compose(overrides))
    formula = 8 * measure_size(config).saved_bytes(*lengths)
    assert formula == pytest.approx(kept(config, 8, *lengths), rel=0.15)


@pytest.mark.parametrize("overrides", [["scale=pocket"], ["scale=small"]], ids=" ".join)
def test_what_they_keep_in_mixed_precision_is_what_the_formula_says_of_halves_if_there_are_any(overrides, has_bf16):
    config = resolve(compose(overrides))
    formula = 8 * measure_size(config).saved_bytes(25, 25, half=has_bf16)
    assert formula == pytest.approx(kept(config, 8, 25, 25, "bf16-mixed"), rel=0.3)


def of_a_gpu(*overrides: str) -> tuple[float, dict]:
    """Bytes of 64 sentences of 25, and the config."""
    config = resolve(compose(["scale=full", "data.vocab_size=37000", *overrides]))
    return estimate_peak_memory(config, measure_size(config), 64, 25, 25, gpu=True), config


def test_a_gpu_holds_weights_gradients_moments_activations_and_a_piece_of_the_logits():
    found, config = of_a_gpu()
    size = measure_size(config)
    piece = min(64, sentences_per_chunk("cuda", 25, 37000)) * 25 * 37000 * 4
    assert found == 16 * size.parameters + 64 * size.saved_bytes(25, 25) + 3 * piece


def test_mixed_precision_halves_what_products_keep_and_adds_a_copy_of_the_weights():
    full, config = of_a_gpu()
    mixed, _ = of_a_gpu("precision=bf16-mixed")
    size = measure_size(config)
    saved = 64 * (size.saved_bytes(25, 25) - size.saved_bytes(25, 25, half=True))
    assert full - mixed == pytest.approx(saved - 2 * size.parameters)


def test_a_processor_needs_what_is_kept_in_the_precision_it_computes_in_and_a_process_around_it(has_bf16):
    config = resolve(compose(["scale=small"]))
    size = measure_size(config)
    mixed, full = (
        estimate_peak_memory(config | {"precision": one}, size, 4, 25, 25) for one in ("bf16-mixed", "32-true")
    )
    assert full > memory.PROCESS + 16 * size.parameters
    halved = 4 * (size.saved_bytes(25, 25) - size.saved_bytes(25, 25, half=True))
    assert full - mixed == pytest.approx(has_bf16 * (memory.HOLES * halved - 2 * size.parameters))


@pytest.mark.parametrize("gpu", [True, False])
def test_double_precision_takes_twice_the_memory(gpu):
    config = resolve(compose(["scale=small"]))
    one, two = (
        estimate_peak_memory(config | {"precision": one}, measure_size(config), 4, 25, 25, gpu=gpu)
        for one in ("32-true", "64-true")
    )
    process = 0 if gpu else memory.PROCESS
    assert two - process == pytest.approx(2 * (one - process))


def test_logits_beyond_a_piece_take_no_more_unless_the_model_gives_them_all_at_once():
    config = resolve(compose(["data.vocab_size=37000"]))
    size = measure_size(config)

    class Whole:
        takes_cost, parameters, saved_bytes = False, 0, staticmethod(lambda source, target, half: 0.0)

    class Pieces(Whole):
        takes_cost = True

    assert size.takes_cost
    few, many = sentences_per_chunk("cpu", 25, 37000), 400
    at_once = [estimate_peak_memory(config, kind, many, 25, 25) - memory.PROCESS for kind in (Whole, Pieces)]
    assert at_once[0] / at_once[1] == pytest.approx(many / few)
