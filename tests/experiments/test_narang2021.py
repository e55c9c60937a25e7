"""The parameter column of Narang et al. 2021, Table 1: of the models that the arms build at the paper's sizes."""

import os
from math import log
from pathlib import Path

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.study.study import load_study
from etude.tasks import build
from etude.yaml_file import read_yaml

STUDY = load_study("narang2021")
PIECES = 32128  # 32,000, 100 sentinels, and what makes them a multiple of 128


def millions(arm: str) -> float:
    sizes = ["scale=full", f"model.vocabulary={PIECES}", "tokenizer.vocab_size=32000"]
    model = build.shapes(resolve(compose([f"experiment=narang2021/{arm}", *sizes])))
    return sum(parameter.numel() for parameter in model.parameters()) / 1e6


def test_every_arm_has_a_printed_row():
    assert set(STUDY.paper.arms) == set(STUDY.arms)


@pytest.mark.parametrize("arm", STUDY.arms)
def test_at_the_papers_sizes_an_arm_has_as_many_parameters_as_are_printed(arm):
    printed = STUDY.paper.arms[arm]["params_M"]
    assert millions(arm) == pytest.approx(printed, rel=0.005, abs=1.0)


@pytest.fixture(scope="module")
def table() -> dict:
    """The paper's table as read from it: $ETUDE_NARANG2021, or `shared/papers/narang2021.yaml` beside the checkout."""
    beside = Path(__file__).parents[3] / "shared" / "papers" / "narang2021.yaml"
    file = Path(os.environ.get("ETUDE_NARANG2021") or beside)
    if not file.is_file():
        pytest.skip("needs the table of the paper: set ETUDE_NARANG2021 to narang2021.yaml")
    return read_yaml(file)["rows"]


def test_the_printed_numbers_are_those_of_the_table(table):
    for arm, row in STUDY.paper.arms.items():
        assert row["params_M"] == table[arm]["params_m"], arm
        assert log(row["ppl"]) == pytest.approx(table[arm]["early"], abs=1e-4), arm
