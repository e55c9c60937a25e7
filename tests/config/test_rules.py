"""Ranges, names, and parts that must fit each other."""

import pytest

from etude.config.compose import compose
from etude.config.rules import check_rules
from etude.errors import UserError


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["seed=-1"], "seed must be at least 0, not -1"),
        (["model.n_layers=0"], "model.n_layers must be at least 1, not 0"),
        (["model.d_ff=-1"], "model.d_ff must be at least 1, not -1"),
        (["budget.max_steps=-1"], "budget.max_steps must be at least 1, not -1"),
        (["budget.valid_every=0"], "budget.valid_every must be at least 1, not 0"),
        (["arm=a/b"], "arm=a/b cannot name a folder"),
        (["study=.."], r"study=\.\. cannot name a folder"),
        (
            ["model/position=learned", "budget.max_pieces=600"],
            "model.position.max_length=512 is shorter than a translation may become.*say model.position.max_length=651",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name_with_the_way_out(overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        check_rules(compose(overrides))


@pytest.mark.parametrize(
    "overrides", [[], ["seed=0"], ["model/position=learned"], ["scale=full"], ["budget.length_noise=0"]]
)
def test_sound_configs_pass(overrides):
    check_rules(compose(overrides))
