"""Table 2: the paper's recipe for each of its four models, and the whole study once, small."""

import re

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.paths import shipped
from etude.study.study import load_study

STUDY = load_study("table2")
SMALL = [
    *("data=grammar", "budget=smoke", "averaging.every=1", "logger=none", "scale=pocket"),
    *("data.train_pairs=400", "data.valid_pairs=20", "data.test_pairs=20", "decoding.max_len_offset=5"),
]  # fmt: skip


def config(arm: str, *typed: str) -> dict:
    return resolve(compose([f"experiment=table2/{arm}", *typed]))


@pytest.mark.parametrize(
    ("arm", "pieces", "averaged", "steps", "dropout", "d_model"),
    [
        ("base_en_de", 37000, 5, 100000, 0.1, 512),
        ("big_en_de", 37000, 20, 300000, 0.3, 1024),
        ("base_en_fr", 32000, 5, 100000, 0.1, 512),
        ("big_en_fr", 32000, 20, 300000, 0.1, 1024),
    ],
)
def test_at_full_scale_every_arm_is_the_recipe_of_sections_5_and_6(arm, pieces, averaged, steps, dropout, d_model):
    found = config(arm, "scale=full")
    model, budget, decoding = found["model"], found["budget"], found["decoding"]
    assert (model["n_layers"], model["d_model"], model["dropout"]) == (6, d_model, dropout)
    assert (found["tokenizer"]["vocab_size"], found["data"]["test"]) == (pieces, "newstest2014")
    assert (budget["max_steps"], budget["warmup_steps"], budget["target_tokens"]) == (steps, 4000, 25000)
    assert (decoding["beam"], decoding["alpha"], decoding["max_len_offset"]) == (4, 0.6, 50)
    assert found["averaging"]["checkpoints"] == averaged


def test_every_big_model_is_held_against_the_base_model_of_its_language():
    assert STUDY.against == {"big_en_de": "base_en_de", "big_en_fr": "base_en_fr"}


def test_the_readme_shows_what_the_paper_printed_of_its_models():
    readme = (shipped("experiments") / "table2" / "README.md").read_text(encoding="utf-8")
    for row in STUDY.paper.arms.values():
        assert f"| {row['bleu']} |" in readme


def test_what_the_paper_says_of_its_cost_follows_from_its_formula():
    readme = (shipped("experiments") / "table2" / "README.md").read_text(encoding="utf-8")
    gpus, flops = 8, 9.5e12  # P100, in single precision
    for model, days in (("base", 0.5), ("big", 3.5)):
        cost = f"{days * 24 * 3600 * gpus * flops:.1e}".replace("+", "")
        assert re.search(rf"^\| Transformer \({model}\) .*\| {cost} \| {cost} \|$", readme, re.MULTILINE), cost


@pytest.mark.slow
def test_the_sweep_and_its_report_finish_on_embedded_text(swept):
    _, table = swept("table2", *SMALL)
    assert [arm for arm in STUDY.arms if arm not in table] == []
    assert "27.3" in table
