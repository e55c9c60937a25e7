"""Studies with layers in the place of arms: what they say, and what they refuse."""

import re

import pytest

from etude.errors import UserError
from etude.studies.arm_names import arm_names
from etude.studies.measured import is_measured, load_measured, outweighs, trained_names
from etude.studies.study import load_study, study_names

ROW = "{paper: {complexity: n, sequential: n, path: n}, overrides: [], flops: FLOPS, operations: {n: 0}, path: {n: 1}}"
SIZES = "sizes: {tiny: {n: [8, 4], d: [2], k: [3], r: [5, 3]}, large: {n: [64], d: [8], k: [3], r: [3]}}\nrepeats: 2\n"
MINE = f"layers: {{mine: {ROW.replace('FLOPS', '{r ≫ d: {n: 1, d: 2, r: 1}}')}}}\n{SIZES}"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes the study `mine` where one stands."""

    def to(text: str) -> None:
        (tmp_path / "experiments" / "mine").mkdir(parents=True, exist_ok=True)
        (tmp_path / "experiments" / "mine" / "study.yaml").write_text(text, encoding="utf-8")
        monkeypatch.chdir(tmp_path)

    return to


def test_a_study_of_ones_own_is_measured_too(write):
    write(MINE)
    assert is_measured("mine")
    assert {*study_names()} - {*trained_names()} == {"mine", "table1"}
    study = load_measured("mine")
    assert (study.title, study.sizes, study.repeats) == ("mine", {"n": [4, 8], "d": [2], "k": [3], "r": [3, 5]}, 2)
    [row] = study.rows
    assert row.symbols == ["n", "d", "r"]
    assert study.setting(row) == {"sizes": {"n": [4, 8], "d": [2], "r": [3, 5]}, "repeats": 2, "overrides": []}


def test_what_was_typed_counts(write):
    write(MINE)
    study = load_measured("mine", ["scale=large", "n=32,16,32", "repeats=7", "model.encoder.cell=lstm"])
    assert study.sizes == {"n": [16, 32], "d": [8], "k": [3], "r": [3]}
    assert (study.repeats, study.overrides) == (7, ["model.encoder.cell=lstm"])
    assert study.setting(study.rows[0])["overrides"] == ["model.encoder.cell=lstm"]


def test_it_has_no_arms_and_whoever_asks_for_them_is_told_so(write):
    write(MINE)
    assert not [arm for arm in arm_names() if arm.startswith(("mine/", "table1/"))]
    with pytest.raises(UserError, match="mine is measured, not trained, and has no arms: `etude sweep mine`"):
        load_study("mine")


def test_where_one_size_outweighs_another_both_are_named():
    assert outweighs("anywhere") is None
    assert outweighs("n ≫ d") == ("n", "d")


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("seed=1", "mine is measured, not trained, so that seed says nothing of it: it takes n, d, k, r, repeats"),
        ("arms=3", "so that arms says nothing of it"),
        ("hydra.launcher.workers=2", "so that hydra.launcher.workers says nothing of it"),
        ("word", "so that word says nothing of it"),
        ("scale=tiy", "scale=tiy: did you mean tiny?"),
        ("n=64,0", "n=64,0: whole numbers above 0, by commas, such as n=32,64,128"),
        ("d=wide", "d=wide: whole numbers above 0"),
        ("k=3,4", "k=4: it must be odd, for as many neighbours on either side"),
        ("repeats=2,3", "repeats is one whole number above 0"),
    ],
)
def test_a_word_that_says_nothing_of_it_is_one_sentence(write, word, sentence):
    write(MINE)
    with pytest.raises(UserError, match=re.escape(sentence)) as caught:
        load_measured("mine", [word])
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("layers: {}\n" + SIZES, "study.yaml names no layer"),
        (
            "layers: {mine: {overrides: []}}\n" + SIZES,
            "layers.mine must have flops, operations, overrides",
        ),
        (MINE.replace("mine:", "'m/x':"), "'m/x' cannot name a layer"),
        (MINE.replace("sequential: n, ", ""), "layers.mine.paper must have complexity, sequential and path"),
        (MINE.replace("overrides: []", "overrides: [{a: b}]"), "layers.mine.overrides must be a list"),
        (MINE.replace("overrides: []", "overrides: a"), "layers.mine.overrides must be a list"),
        (MINE.replace("r ≫ d", "r > d"), "layers.mine.flops: 'r > d' is unknown"),
        (MINE.replace("r ≫ d", "k ≫ d"), "layers.mine.flops: 'k ≫ d' is unknown"),
        (MINE.replace("r: 1}", "x: 1}"), "layers.mine.flops.r ≫ d must map sizes (n, d, k, r) to exponents"),
        (MINE.replace("d: 2, r: 1", "d: 2.5, r: 1"), "must map sizes (n, d, k, r) to exponents"),
        (MINE.replace("{r ≫ d: {n: 1, d: 2, r: 1}}", "anywhere"), "layers.mine.flops must map a regime to exponents"),
        (MINE.replace("{r ≫ d: {n: 1, d: 2, r: 1}}", "{}"), "layers.mine.flops must say what is expected of n and d"),
        (MINE.replace("operations: {n: 0}", "operations: 0"), "layers.mine.operations must map sizes"),
        (MINE.replace("k: [3], r: [5", "r: [5"), "sizes.tiny must have n, d, k, r"),
        (MINE.replace("[8, 4]", "[8, 0]"), "sizes.tiny.n must be a list of whole numbers above 0"),
        (MINE.replace("[8, 4]", "8"), "sizes.tiny.n must be a list of whole numbers above 0"),
        (MINE.replace("repeats: 2", "repeats: yes"), "repeats is one whole number above 0"),
        (MINE.replace("repeats: 2", ""), "the key 'repeats' is missing"),
        (MINE + "arms: {base: []}\n", "unknown key 'arms'"),
        ("layers: {mine: {}}\nsizes: 3\nrepeats: 1\n", "layers.mine must have"),
        (MINE.partition("sizes")[0] + "sizes: 3\nrepeats: 1\n", "sizes must map a scale, such as pocket, to lists"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(write, text, sentence):
    write(text)
    with pytest.raises(UserError, match=re.escape(sentence)) as caught:
        load_measured("mine")
    assert "\n" not in str(caught.value)
    assert "study.yaml" in str(caught.value) or "repeats" in sentence


def test_a_study_that_cannot_be_read_hides_no_other(write):
    write("title: a: b\n")
    assert {"mine", "table3"} <= {*trained_names()}
    with pytest.raises(UserError, match=r"mine/study\.yaml, line 1: this is not YAML"):
        load_study("mine")
