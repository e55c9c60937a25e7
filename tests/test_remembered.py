"""What the suite keeps of Hydra's compositions is what Hydra composes."""

import hydra
import pytest
from hydra import initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf

from etude.config import compose
from etude.config.resolvers import register
from etude.paths import shipped

OVERRIDES = [
    [],
    ["seed=3"],
    ["model/position=rope", "model.heads=2", "seed=3"],
    ["model.heads=2", "scale=small", "model.heads=4"],  # the last one counts
    ["experiment=table3/A1", "budget.max_steps=7"],
    ["~decoding", "trainer.devices=2"],
    ["+callbacks.mine={_target_: mine.Mine}", "budget={max_steps: 3}"],
    ["hydra.job.name=mine", "seed=2"],
]
MISTAKES = [["model.headz=3"], ["seed=2", "model/position=no"], ["model/no=rope", "seed=2"], ["seed=[1"]]


@pytest.mark.parametrize("overrides", OVERRIDES, ids=" ".join)
def test_a_composition_that_is_remembered_is_that_of_hydra(overrides: list[str]) -> None:
    register()
    assert compose.hydra_compose is not hydra.compose
    with initialize_config_dir(str(shipped("conf")), version_base="1.3", job_name="train"):
        expected, *found = (
            OmegaConf.to_container(composing("train", overrides, return_hydra_config=True))
            for composing in (hydra.compose, compose.hydra_compose, compose.hydra_compose)
        )
    assert found == [expected, expected]


@pytest.mark.parametrize("overrides", MISTAKES, ids=" ".join)
def test_a_mistake_is_told_as_hydra_tells_it(overrides: list[str]) -> None:
    told = []
    with initialize_config_dir(str(shipped("conf")), version_base="1.3", job_name="train"):
        for composing in (hydra.compose, compose.hydra_compose):
            with pytest.raises(HydraException) as raised:
                composing("train", overrides)
            told.append((raised.type, str(raised.value)))
    assert told[0] == told[1]
