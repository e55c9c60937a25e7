"""The systems of the paper's neighbourhood, at equal parameters and equal computation."""

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.study.study import load_study
from etude.tasks.size import measure_size

STUDY = load_study("history")
SMALL = [
    *("budget=smoke", "logger=none", "data.train_pairs=400", "data.valid_pairs=20", "data.test_pairs=20"),
    "decoding.max_len_offset=5",
]


def config(arm: str, *typed: str) -> dict:
    return resolve(compose([f"experiment=history/{arm}", *typed]))


def size(arm: str):
    return measure_size(config(arm))


@pytest.mark.parametrize("arm", STUDY.arms)
def test_every_system_has_as_many_parameters_as_the_transformer(arm):
    assert size(arm).parameters == pytest.approx(size(STUDY.baseline).parameters, rel=0.07)


@pytest.mark.parametrize("arm", STUDY.arms)
def test_every_system_takes_as_many_operations_as_the_transformer(arm):
    ours, base = (size(name).training_flops(12, 12) for name in (arm, STUDY.baseline))
    assert ours == pytest.approx(base, rel=0.05)


def test_the_systems_are_those_of_the_papers():
    chosen = {arm: config(arm)["choices"] for arm in STUDY.arms}
    made = {arm: (choices["model/encoder"], choices["model/decoder"]) for arm, choices in chosen.items()}
    assert made["rnn"] == made["additive"] == made["multiplicative"] == ("recurrent", "recurrent")
    assert made["convolution"] == ("convolution", "convolution")
    assert made["base"] == made["modern"] == ("transformer", "transformer")
    alignments = {arm: choices.get("model/decoder/alignment") for arm, choices in chosen.items()}
    assert alignments["rnn"] == "none"
    assert alignments["additive"] == "additive"
    assert alignments["multiplicative"] == "general"


def test_in_equal_time_the_systems_are_the_same_but_for_their_updates():
    timed = load_study("history_time")
    others = {arm: [one for one in typed if "max_steps" not in one] for arm, typed in timed.arms.items()}
    assert others == STUDY.arms
    updates = {arm: resolve(compose([f"experiment=history_time/{arm}"]))["budget"]["max_steps"] for arm in timed.arms}
    assert updates == {
        "rnn": 2400, "additive": 2400, "multiplicative": 2400, "convolution": 4400, "base": 4000, "modern": 3200
    }  # fmt: skip


@pytest.mark.slow
def test_the_sweep_and_its_report_finish(swept):
    _, table = swept("history", *SMALL)
    assert [arm for arm in STUDY.arms if arm not in table] == []
