"""Table 4: what the paper says of its parser, and the whole study once, small."""

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.paths import shipped
from etude.study.study import load_study

STUDY = load_study("table4")
SMALL = [
    *("budget=smoke", "budget.max_steps=3", "logger=none", "data.train_pairs=60", "data.valid_pairs=4"),
    *("data.test_pairs=4", "data.vocab_size=300", "decoding.max_len_offset=5"),
]  # fmt: skip


def config(arm: str, *typed: str) -> dict:
    return resolve(compose([f"experiment=table4/{arm}", *typed]))


@pytest.mark.parametrize("arm", STUDY.paper.arms)
def test_at_full_scale_the_parser_is_that_of_section_6_3(arm):
    found = config(arm, "scale=full")
    model, decoding = found["model"], found["decoding"]
    assert (model["n_layers"], model["d_model"], model["d_ff"], model["heads"]) == (4, 1024, 2048, 8)
    assert (decoding["beam"], decoding["alpha"], decoding["max_len_offset"]) == (21, 0.3, 300)


def test_the_real_treebank_has_its_own_sections_and_vocabulary(tmp_path):
    data = config("wsj_only", "scale=full", "data=wsj", f"data.root={tmp_path}")["data"]
    assert (data["vocab_size"], data["sections"]) == (16000, {"train": [2, 21], "valid": [22, 22], "test": [23, 23]})


def test_the_study_shows_f1_and_perplexity_and_no_bleu():
    assert list(STUDY.metrics) == ["f1", "ppl"]
    for arm in STUDY.arms:
        assert list(config(arm)["metrics"]) == ["bracket_f1"]


def test_the_readme_shows_every_arm_and_what_the_paper_printed():
    readme = (shipped("experiments") / "table4" / "README.md").read_text(encoding="utf-8")
    assert [arm for arm in STUDY.arms if f"| {arm} |" not in readme] == []
    for row in STUDY.paper.arms.values():
        assert f"{row['f1']}" in readme


@pytest.mark.slow
def test_the_sweep_and_its_report_finish_and_show_f1(swept):
    shown, table = swept("table4", *SMALL)
    assert "BLEU" not in shown
    assert "F1" in table
    assert [arm for arm in STUDY.arms if arm not in table] == []
