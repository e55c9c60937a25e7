"""What the interpolations of a config read."""

import pytest
from omegaconf import OmegaConf

from etude.config.compose import compose
from etude.config.references import READS, is_read, references
from etude.config.resolve import as_written


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("plain", set()),
        ({"a": ["${model.d_model}", {"b": "x${seed}y${ arm }"}]}, {"model.d_model", "seed", "arm"}),
        ("${head_size:${model.d_k},d_k}", {"model.d_model", "model.heads", "model.d_k"}),
        ("${oc.env:HOME,'~'}/x", set()),
        ("${.relative}", None),
        ("${model[d_model]}", None),
        ("${${arm}}", None),
        ("${hydra.job.num}", None),
        ("${hydra:job.num}", None),
        ("${now:%Y}", None),
        ("${oc.select:${arm}}", None),
    ],
)
def test_keys_are_found_or_nobody_claims_to_know_them(value, read):
    assert references(value) == read


def test_a_key_is_read_with_what_holds_it_and_what_it_holds():
    assert is_read("model.heads", ["model"])
    assert is_read("model", ["model.heads"])
    assert not is_read("model.heads", ["model.heads_x", "model.head", "other.model.heads"])


def test_every_resolver_of_ours_is_known():
    compose()
    ours = [name for name in READS if not name.startswith("oc.")]
    assert all(OmegaConf.has_resolver(name) for name in ours)
    assert references(as_written(compose(["scale=full"]))) is not None
