"""Composing many configs at once gives what composing each by itself gives."""

import pytest
from omegaconf import OmegaConf

from etude.config.arms import arm_names
from etude.config.compose import compose
from etude.config.identity import resolved
from etude.config.many import compose_many
from etude.errors import UserError

ARMS = sorted(arm_names())
TYPED = [
    [],
    ["scale=full", "model.heads=4", "model/position=learned"],
    ["model=big", "model.dropout=0.2"],
    ["experiment=table3/A1", "model.heads=2"],
    ["experiment=table3/E1", "model/position=none", "seed=3"],
    ["experiment=table3/big", "model=tiny"],
    ["+data.extra=1"],
    ["model.d_k=${width:32}", "scale.width=0.25"],
]


@pytest.mark.parametrize("scale", ["pocket", "full"])
def test_every_arm_of_every_study_is_the_same_config(scale):
    runs = [[f"experiment={arm}", f"scale={scale}"] for arm in ARMS]
    for overrides, config in zip(runs, compose_many(runs), strict=True):
        assert resolved(config) == resolved(compose(overrides)), overrides


def test_whatever_is_typed_is_the_same_config_and_keeps_what_was_typed():
    for overrides, config in zip(TYPED, compose_many(TYPED), strict=True):
        alone = compose(overrides)
        assert OmegaConf.to_container(config.hydra.overrides.task) == overrides
        assert config.hydra.runtime.choices == alone.hydra.runtime.choices
        ours, theirs = (OmegaConf.masked_copy(c, [key for key in c if key != "hydra"]) for c in (config, alone))
        assert ours == theirs, overrides


@pytest.mark.parametrize("wrong", ["model.headz=4", "experiment=table3/A9", "model/position=rop", "scale.width.x=1"])
def test_a_mistake_is_told_as_composing_alone_tells_it(wrong):
    with pytest.raises(UserError) as alone:
        compose([wrong])
    with pytest.raises(UserError) as together:
        compose_many([[], [wrong]])
    assert str(together.value) == str(alone.value)
