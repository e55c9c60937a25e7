"""What a plan knows of a model without building it."""

import pytest

from etude.config.compose import compose
from etude.config.identity import resolve
from etude.errors import UserError
from etude.tasks import build
from etude.tasks.size import build_shallow, measure_size

TINY = ["model.d_model=16", "model.d_ff=24", "model.heads=4", "model.n_layers=3", "data.vocab_size=60"]


def config_of(*overrides: str) -> dict:
    return resolve(compose([*TINY, *overrides]))


def built(config: dict) -> int:
    return sum(weight.numel() for weight in build.model(config, config["tokenizer"]["vocab_size"]).parameters())


def test_every_variation_has_as_many_parameters_as_are_built(variation):
    config = config_of(*variation)
    assert measure_size(config).parameters == built(config)


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
