"""The parameter column of Table 3, which can be checked to the last million."""

import re

import pytest
import torch

from etude import build
from etude.config.compose import compose
from etude.config.identity import resolved
from etude.config.studies import load_study
from etude.paths import shipped

STUDY = load_study("table3")
PRINTED = {arm: row["params_M"] for arm, row in STUDY.paper.arms.items() if row.get("params_M") is not None}
CELLS = sorted(set(PRINTED) - {"big"})


def millions(arm: str, conventions: str, pieces: int) -> float:
    config = resolved(compose([f"experiment=table3/{arm}", "scale=full", f"model/conventions={conventions}"]))
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build.model(config, pieces).parameters()) / 1e6


def test_the_paper_prints_eleven_cells():
    assert len(PRINTED) == 11


@pytest.mark.parametrize("arm", CELLS)
def test_as_the_published_code_counted_every_cell_but_big_rounds_to_the_printed_number(arm):
    assert round(millions(arm, "t2t_2017", 37000)) == PRINTED[arm]


@pytest.mark.parametrize("arm", CELLS)
def test_as_the_text_says_with_37000_pieces_no_cell_rounds_to_the_printed_number(arm):
    assert round(millions(arm, "paper", 37000)) != PRINTED[arm]


@pytest.mark.parametrize("conventions", ["paper", "t2t_2017"])
def test_big_is_off_in_both(conventions):
    assert round(millions("big", conventions, 37000)) != PRINTED["big"]


@pytest.mark.parametrize("arm", sorted(set(STUDY.arms) - set(PRINTED)))
def test_where_the_paper_prints_no_number_the_base_model_has_as_many_but_for_the_learned_positions(arm):
    more = {"E1": 2 * 512 * 512 / 1e6}
    assert millions(arm, "paper", 37000) == pytest.approx(millions("base", "paper", 37000) + more.get(arm, 0))


def test_the_readme_of_the_study_shows_these_counts_and_what_is_left_over():
    readme = (shipped("experiments") / "table3" / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (\w+) \| (\d+) \| ([\d.]+) \| ([+-][\d.]+) \| ([\d.]+) \| ([+-][\d.]+) \|$", readme, re.M)
    assert {arm for arm, *_ in shown} == set(PRINTED)
    for arm, paper, published, over, text, left in shown:
        assert int(paper) == PRINTED[arm]
        for count, residual, conventions in ((published, over, "t2t_2017"), (text, left, "paper")):
            ours = millions(arm, conventions, 37000)
            assert (count, residual) == (f"{ours:.2f}", f"{ours - PRINTED[arm]:+.2f}")
