"""Composing many configs at once gives what composing each by itself gives."""

import pytest
from omegaconf import OmegaConf

from etude.config.compose import compose
from etude.config.compose_cache import Composed, Composer
from etude.errors import UserError
from etude.studies.study import arm_names

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
    ["data=files", "data.languages=[en,fr]", "data.valid={tsv: v.tsv}", "data.valid.tsv=w.tsv"],
    ["hydra.job.chdir=false", "seed=2"],
    ["model.d_ff=${seed}", "model.d_k=null"],
    ["experiment=table3/A1", "experiment=table3/B1"],
    ["arm=mine", "study=mine", "experiment=table3/C4"],
]


@pytest.fixture(scope="module")
def composed() -> Composer:
    """One for all tests: what is shared must not mix."""
    return Composer()


def same(ours: Composed, theirs: Composed) -> bool:
    """Also in the order of the keys, which the frozen file keeps."""
    texts = [OmegaConf.to_yaml(composed.own) for composed in (ours, theirs)]
    return texts[0] == texts[1] and (ours.choices, ours.typed) == (theirs.choices, theirs.typed)


@pytest.mark.slow
@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_of_every_study_is_the_same_config(composed, arm):
    overrides = [f"experiment={arm}", "scale=full"]
    assert same(composed(overrides), Composed.of(compose(overrides)))


@pytest.mark.parametrize("overrides", TYPED, ids=str)
def test_whatever_is_typed_is_the_same_config_and_keeps_what_was_typed(composed, overrides):
    assert same(composed(overrides), Composed.of(compose(overrides)))


def test_arms_that_only_set_values_share_a_composition():
    asked = []

    def counting(overrides):
        asked.append(list(overrides))
        return compose(overrides)

    composed = Composer(counting)
    for arm in ("base", "A1", "B1", "C4", "D3"):
        composed([f"experiment=table3/{arm}", "seed=1"])
    assert asked == [[]]
    composed(["experiment=table3/E1"])
    assert asked == [[], ["experiment=table3/E1"]]


@pytest.mark.parametrize(
    "wrong",
    [
        ["model.headz=4"],
        ["experiment=table3/A9"],
        ["model/position=rop"],
        ["scale.width.x=1"],
        ["seed=1", "seed=2", "nothing=1"],
        ["model.heads=[1"],
        ["model.heads"],
        ["model=3"],
    ],
    ids=str,
)
def test_a_mistake_is_told_as_composing_alone_tells_it(composed, wrong):
    with pytest.raises(UserError) as alone:
        compose(wrong)
    with pytest.raises(UserError) as together:
        composed(wrong)
    assert str(together.value) == str(alone.value)
