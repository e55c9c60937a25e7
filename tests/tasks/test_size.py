"""What a plan knows of a model without building it."""

import pytest
import torch

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.tasks import build
from etude.tasks.size import build_shallow, measure_size

TINY = ["model.d_model=16", "model.d_ff=24", "model.heads=4", "model.n_layers=3", "data.vocab_size=60"]


def config_of(*overrides: str) -> dict:
    return resolve(compose([*TINY, *overrides]))


def built(config: dict) -> int:
    return sum(weight.numel() for weight in build.model(config, config["tokenizer"]["vocab_size"]).parameters())


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_layers_that_were_not_built_are_counted(layers):
    config = config_of(f"model.n_layers={layers}", "model/position=shaw", "model/residual=pre")
    assert measure_size(config).parameters == built(config)


def test_rows_that_no_piece_uses_are_counted():
    config = config_of("model.vocabulary=100", "model/tying=none")
    assert (
        measure_size(config).parameters
        == built(config)
        == measure_size(config_of("model/tying=none")).parameters + 3 * 40 * 16
    )


def test_every_matrix_entry_multiplies_source_or_target_positions():
    of_model = measure_size(config_of("model.vocabulary=null"))
    self_attention, network = 4 * 16 * 16, 2 * 16 * 24
    encoder, decoder = self_attention + network, 2 * self_attention + network
    assert of_model.source_weights == 3 * (encoder + 2 * 16 * 16)
    assert of_model.target_weights == 3 * (decoder - 2 * 16 * 16) + 60 * 16


def test_no_memory_is_taken():
    assert {weight.device.type for weight in build_shallow(config_of()).parameters()} == {"meta"}


def test_sizes_that_a_part_refuses_are_told():
    with pytest.raises(UserError, match="window=-1"):
        measure_size(config_of("model/attention=local", "model.attention.window=-1"))


def test_the_pieces_are_those_that_the_tokenizer_gets_whatever_suits_the_text():
    said, meant = config_of("tokenizer.vocab_size=40"), config_of("data.vocab_size=40")
    assert said["data"]["vocab_size"] == 60
    assert measure_size(said).parameters == measure_size(meant).parameters < measure_size(config_of()).parameters


class Recurrent(torch.nn.Module):
    """A model that étude does not know."""

    def __init__(self, vocab_size: int, *, d_model: int, layer: str = "GRU") -> None:
        super().__init__()
        self.table = torch.nn.Embedding(vocab_size, d_model)
        self.encoder, self.decoder = (getattr(torch.nn, layer)(d_model, d_model, batch_first=True) for _ in range(2))
        self.output = torch.nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, source, source_mask, target_in):
        _, hidden = self.encoder(self.table(source))
        return self.output(self.decoder(self.table(target_in), hidden)[0])

    def start(self, source, source_mask):
        return self.encoder(self.table(source))[1]

    def step(self, tokens, state):
        return self.output(self.decoder(self.table(tokens[:, None]), state)[0][:, 0])


def test_what_a_model_of_anybodys_costs_is_counted():
    d, v, source, target = 16, 60, 5, 3
    size = measure_size(config_of(f"model._target_={__name__}.Recurrent", "tokenizer.vocab_size=60"))
    assert size.parameters == 2 * (6 * d * d + 6 * d) + 2 * v * d
    forward = 2 * 6 * d * d * (source + target) + 2 * v * d * target
    unneeded = 2 * 3 * d * d  # of the encoder's first state, zeros, nobody asks for a gradient
    assert size.training_flops(source, target) == 3 * forward - unneeded
    step = 2 * 6 * d * d + 2 * v * d  # the first serves one hypothesis, each later one four
    assert size.decoding_flops(source, target, beam=4) == 2 * 6 * d * d * source + step * (1 + 4 * (target - 1))
    assert size.saved_bytes(source, 2 * target) > size.saved_bytes(source, target) > 4 * d * (source + target)


class Looking(Recurrent):
    """One that looks at what it is given, and has an even number of layers."""

    def __init__(self, vocab_size: int, *, d_model: int, layer: str, n_layers: int) -> None:
        super().__init__(vocab_size, d_model=d_model, layer=layer)
        if n_layers % 2:
            raise ValueError("n_layers must be even")

    def forward(self, source, source_mask, target_in):
        lengths = source_mask.sum(dim=1).cpu()
        assert lengths.min() > 0
        return super().forward(source, source_mask, target_in)


class Failing(Recurrent):
    """One with a mistake in it."""

    def forward(self, source, source_mask, target_in):
        raise ValueError("what a pity")


@pytest.mark.parametrize("layer", ["GRU", "LSTM"])
def test_a_model_that_looks_at_what_it_is_given_is_counted_with_numbers(layer):
    asked = ["tokenizer.vocab_size=60", "model.n_layers=4", f"+model.layer={layer}"]
    plain, looking = (config_of(f"model._target_={__name__}.{name}", *asked) for name in ("Recurrent", "Looking"))
    assert measure_size(looking).training_flops(5, 3) == measure_size(plain).training_flops(5, 3)
    assert torch.backends.mkldnn.enabled


def test_a_model_that_fails_is_told_by_name_before_anything_is_trained():
    config = config_of(f"model._target_={__name__}.Failing")
    with pytest.raises(UserError, match=r"model: Failing fails in .*\.Failing \(.*, line \d+\) when .*: what a pity"):
        measure_size(config).training_flops(5, 3)


class Experts(torch.nn.Module):
    """A feed-forward network of one's own, whose matrices are no linear layers."""

    def __init__(self, *, d_model: int, d_ff: int, broken: bool = False) -> None:
        super().__init__()
        self.inner = torch.nn.Parameter(torch.zeros(d_model, d_ff))
        self.outer = torch.nn.Parameter(torch.zeros(d_ff, d_model))
        self.broken = broken

    def forward(self, x):
        return (x @ self.inner).relu() @ (self.inner if self.broken else self.outer)


def test_what_a_part_of_ones_own_multiplies_is_counted_though_it_is_no_linear_layer():
    ours = measure_size(config_of())
    theirs = measure_size(config_of(f"model.feedforward._target_={__name__}.Experts"))
    for count in (lambda size: size.training_flops(11, 12), lambda size: size.decoding_flops(11, 12, 4)):
        assert count(theirs) == count(ours)


def test_a_part_of_ones_own_that_fails_is_told_with_its_file():
    own = [f"model.feedforward._target_={__name__}.Experts", "+model.feedforward.broken=true"]
    with pytest.raises(UserError, match=r"EncoderDecoder fails in .*Experts \(.*test_size\.py, line \d+\) when"):
        measure_size(config_of(*own)).training_flops(5, 3)


class Beside(Experts):
    """One that returns nothing for its output."""

    def forward(self, x):
        super().forward(x)


def test_a_part_of_ones_own_that_returns_no_tensor_is_told_with_its_file():
    config = config_of(f"model.feedforward._target_={__name__}.Beside")
    with pytest.raises(UserError, match=r"EncoderDecoder fails with .*Beside \(.*size\.py\) when .*AttributeError"):
        measure_size(config).training_flops(5, 3)


class Late(torch.nn.Module):
    """A feed-forward network of one's own that makes its matrix when it is called."""

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        super().__init__()

    def forward(self, x):
        if not hasattr(self, "matrix"):
            self.matrix = torch.nn.Parameter(torch.zeros(x.size(-1), x.size(-1), device=x.device))
        return x @ self.matrix


def test_a_parameter_that_is_made_too_late_is_refused():
    config = config_of(f"model.feedforward._target_={__name__}.Late")
    with pytest.raises(UserError, match=r"model\.encoder\.layers\.0\.feedforward\.matrix is made when .*: make it in"):
        measure_size(config).training_flops(5, 3)


def test_the_class_of_a_model_is_refused_where_it_lacks_what_decoding_calls():
    config = config_of("model._target_=torch.nn.Identity")
    with pytest.raises(UserError, match=r"model: torch\.nn\.Identity has no start and no step"):
        build.shapes(config)
