"""Parameters and operations of Narang et al. 2021, Table 1: of the arms at the paper's sizes."""

import math
import os
from collections import Counter
from functools import cache
from math import log
from pathlib import Path

import pytest
import torch
from torch import nn

from etude.config import parts
from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.study.study import load_study
from etude.tasks.size import Size, measure_size
from etude.yaml_file import read_yaml

STUDY, TRANSLATION = load_study("narang2021"), load_study("narang2021_translation")
PIECES = 32128  # 32,000, 100 sentinels, and what makes them a multiple of 128


@cache
def measured(arm: str) -> tuple[dict, Size]:
    """The model's part of the config, and its size."""
    sizes = ["scale=full", f"model.vocabulary={PIECES}", "tokenizer.vocab_size=32000", "budget.context=512"]
    config = resolve(compose([f"experiment=narang2021/{arm}", *sizes]))
    return config["model"], measure_size(config)


def trillions(arm: str) -> float:
    """Multiply-adds of a forward pass of 128 x (512 to 114) tokens, a look-up being a product with a one-hot vector."""
    model, size = measured(arm)
    with torch.device("meta"):
        tying = parts.make(model["tying"], PIECES)
    entries = {
        side: sum(table.weight.numel() for table in tables.modules() if isinstance(table, nn.Embedding))
        for side, tables in (("source", tying.source_table), ("target", tying.target_table))
    }
    forward = size.training_flops(512, 114) / 3 / 2
    memory = model["feedforward"].get("inside", {})  # of one layer of the decoder
    reads = memory["heads"] * memory["neighbours"] * memory["keys"] ** 2 if "neighbours" in memory else 0
    values = reads * model["d_model"]  # the paper counts 387 T here, nearly all of them these
    return 128 * (forward + 512 * entries["source"] + 114 * (entries["target"] + values)) / 1e12


def test_every_arm_has_a_printed_row():
    assert set(STUDY.paper.arms) == set(STUDY.arms) == set(TRANSLATION.paper.arms)


def test_on_translation_an_arm_changes_what_it_changes_in_pretraining():
    for arm, words in STUDY.arms.items():
        changed = ({*words} ^ {*STUDY.arms[STUDY.baseline]}) - {"model.tying.reserved=100"}  # of tokens that mark spans
        assert {*TRANSLATION.arms[arm]} ^ {*TRANSLATION.arms[TRANSLATION.baseline]} == changed, arm


@pytest.mark.parametrize("arm", STUDY.arms)
def test_at_the_papers_sizes_an_arm_has_as_many_parameters_as_are_printed(arm):
    printed = STUDY.paper.arms[arm]["params_M"]
    assert measured(arm)[1].parameters / 1e6 == pytest.approx(printed, rel=0.005, abs=1.0)


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
        assert log(row["early"]) == pytest.approx(table[arm]["early"], abs=1e-4), arm
        assert log(row["ppl"]) == pytest.approx(table[arm]["final"], abs=1e-4), arm
        assert row["early_sd"] == table[arm]["early_sd"], arm
        assert row["speed"] == table[arm]["steps_per_s"], arm
        assert TRANSLATION.paper.arms[arm]["bleu"] == table[arm]["wmt_en_de"], arm


def test_a_sign_is_asked_of_the_differences_that_the_paper_tells_apart(table):
    """More than three standard deviations of the difference of two losses."""
    base, asked = table["vanilla"], Counter()
    for arm, row in table.items():
        if abs(row["early"] - base["early"]) > 3 * math.sqrt(row["early_sd"] ** 2 + base["early_sd"] ** 2):
            asked[row["early"] > base["early"]] += 1
            assert is_large(arm), arm
        else:
            assert not is_large(arm), arm
    assert asked == {True: 24, False: 7}


def is_large(arm: str) -> bool:
    row, base = STUDY.paper.arms[arm], STUDY.paper.arms[STUDY.baseline]
    assert STUDY.criteria is not None
    return abs(log(row["early"] / base["early"])) > STUDY.criteria.threshold(row["early_sd"], base["early_sd"])


@pytest.mark.slow
@pytest.mark.parametrize("arm", STUDY.arms)
def test_an_arm_takes_as_many_operations_as_are_printed(arm, table):
    printed = table[arm]["ops_t"] * {"funnel": 4}.get(arm, 1)  # of which the paper prints a quarter
    assert trillions(arm) == pytest.approx(printed, rel=0.05)
