"""The parameter column of Table 3, which can be checked to the last million."""

import re

import pytest
import torch

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.paths import shipped
from etude.study.study import load_study
from etude.tasks import build

STUDY = load_study("table3")
PRINTED = {arm: row["params_M"] for arm, row in STUDY.paper.arms.items() if row.get("params_M") is not None}
CELLS = sorted(set(PRINTED) - {"big"})


def millions(arm: str, conventions: str, pieces: int) -> float:
    config = resolve(compose([f"experiment=table3/{arm}", "scale=full", f"model/conventions={conventions}"]))
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build.model(config, pieces).parameters()) / 1e6


@pytest.mark.parametrize("scale", ["full", "small", "pocket"])
def test_at_every_scale_heads_and_their_sizes_stand_to_the_base_as_in_the_paper(scale):
    """But for A1, which cannot have less than one head."""
    models = {arm: resolve(compose([f"experiment=table3/{arm}", f"scale={scale}"]))["model"] for arm in STUDY.arms}
    attention = {arm: model["attention"] for arm, model in models.items()}
    base = attention["base"]
    assert {arm: attention[arm]["heads"] / base["heads"] for arm in ("A2", "A3", "A4", "C4", "C5", "big")} == {
        "A2": 0.5, "A3": 2, "A4": 4, "C4": 1, "C5": 1, "big": 2
    }  # fmt: skip
    sizes = {arm: attention[arm]["d_k"] / base["d_k"] for arm in ("B1", "B2", "C4", "C5", "big")}
    assert sizes == {"B1": 0.25, "B2": 0.5, "C4": 0.5, "C5": 2, "big": 1}
    assert attention["A1"]["heads"] == 1
    for arm in ("base", "A1", "A2", "A3", "A4"):
        assert attention[arm]["heads"] * attention[arm]["d_k"] == models[arm]["d_model"]


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
