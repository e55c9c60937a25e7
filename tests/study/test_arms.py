"""Arms that are made: every combination, and everything but one."""

import re
from datetime import date
from math import prod
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.errors import UserError
from etude.paths import find_file
from etude.study.arms import combine, leave_one_out
from etude.study.study import load_study
from hydra_plugins.etude_studies import arm_config

FILE = Path("study.yaml")
ALL = ["model/residual=pre", "model/norm=rms", "model/position=rope"]
KEYS = st.sampled_from(
    ["model.heads", "model/position", "model/norm", "budget.lr_factor", "model.d_k", "budget.max_steps"]
)
PLAIN = st.integers(0, 99) | st.sampled_from(["a", "b", "none", "${width:512}"])
VALUES = st.lists(PLAIN, min_size=1, max_size=4, unique_by=str)


def write(folder: Path, **content: Any) -> None:
    """Write the study down."""
    (folder / "study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


@settings(deadline=None)  # whoever is slow on a busy machine is not wrong
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_a_grid_has_as_many_arms_as_the_product_of_its_values_and_each_combination_once(grid: dict[str, Any]) -> None:
    arms = combine(FILE, grid)
    assert len(arms) == len({tuple(overrides) for overrides in arms.values()}) == prod(map(len, grid.values()))
    for overrides in arms.values():
        assert [override.partition("=")[0] for override in overrides] == list(grid)


@settings(deadline=None)
@given(st.lists(KEYS, min_size=2, unique=True))
def test_each_left_out_arm_differs_from_all_in_exactly_one_override(keys: list[str]) -> None:
    full = [f"{key}=1" for key in keys]
    arms = leave_one_out(FILE, "all", {"all": full})
    assert [set(full) - set(overrides) for overrides in arms.values()] == [{override} for override in full]
    assert all(set(overrides) < set(full) for overrides in arms.values())


def test_a_grid_is_named_after_its_values_and_the_first_of_each_make_the_baseline(folder: Path) -> None:
    write(folder, grid={"model.heads": [8, 4], "model/position": ["sinusoidal", "rope"]})
    study = load_study("mine")
    assert list(study.arms) == ["heads8-sinusoidal", "heads8-rope", "heads4-sinusoidal", "heads4-rope"]
    assert study.baseline == "heads8-sinusoidal"
    config = arm_config("mine/heads4-rope")
    assert (config.model.heads, config.defaults[0]) == (4, {"override /model/position": "rope"})


def test_each_value_of_an_axis_is_tried_on_the_baseline_whatever_that_changes(folder: Path) -> None:
    written = {"baseline": "mine", "arms": {"mine": ["model/norm=rms", "model.dropout=0.3"]}, "each": ["model"]}
    (folder / "study.yaml").write_text(yaml.safe_dump(written))
    arms = load_study("mine").arms
    assert arms["position-rope"] == ["model/norm=rms", "model.dropout=0.3", "model/position=rope"]
    assert arms["norm-layer"] == ["model.dropout=0.3", "model/norm=layer"]
    assert "norm-rms" not in arms


def test_a_value_that_needs_another_part_is_held_against_that_part_alone(folder: Path) -> None:
    written = {"baseline": "base", "arms": {"base": []}, "each": ["model"]}
    (folder / "study.yaml").write_text(yaml.safe_dump(written))
    study = load_study("mine")
    assert (study.reference("alignment-dot"), study.reference("norm-rms")) == ("decoder-recurrent", "base")
    (folder / "study.yaml").write_text(yaml.safe_dump(written | {"against": {"alignment-dot": "base"}}))
    assert load_study("mine").reference("alignment-dot") == "base"


def test_the_axes_of_a_shipped_study_have_the_parts_of_the_folder_where_the_user_stands_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "conf" / "model" / "norm").mkdir(parents=True)
    (tmp_path / "here" / "conf" / "model" / "norm" / "mine.yaml").write_text("_target_: torch.nn.Identity\n")
    for folder, known in ((tmp_path / "here", True), (tmp_path, False)):
        monkeypatch.chdir(folder)
        assert ("norm-mine" in load_study("axes").arms) is known


@pytest.mark.parametrize("name", ["an_experts", "my_experts"])
def test_a_part_of_ones_own_changes_no_arm_that_there_was(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though both have parts of the same names, and whichever comes first in the alphabet."""
    monkeypatch.chdir(tmp_path)
    before = load_study("axes").arms
    own = tmp_path / "conf" / "model" / "feedforward" / f"{name}.yaml"
    own.parent.mkdir(parents=True)
    own.write_bytes(find_file("conf", "model/feedforward/experts.yaml").read_bytes())
    after = load_study("axes").arms
    assert {arm: after[arm] for arm in before} == before
    assert f"model/feedforward={name}" in after[f"{name}-balance-jitter"]


@pytest.mark.parametrize("twice", [[], ["model/norm"]])
def test_one_axis_may_be_named(twice: list[str], folder: Path) -> None:
    each = ["model/norm", "model/init", *twice]
    (folder / "study.yaml").write_text(yaml.safe_dump({"baseline": "base", "arms": {"base": []}, "each": each}))
    assert {arm.partition("-")[0] for arm in load_study("mine").arms} == {"base", "norm", "init"}


def test_a_value_that_needs_another_part_replaces_the_baselines(folder: Path) -> None:
    written = {"baseline": "mine", "arms": {"mine": ["model/decoder=convolution"]}, "each": ["model"]}
    (folder / "study.yaml").write_text(yaml.safe_dump(written))
    assert load_study("mine").arms["alignment-dot"] == ["model/decoder=recurrent", "model/decoder/alignment=dot"]


def test_a_grid_may_stand_beside_written_arms_and_name_its_baseline(folder: Path) -> None:
    write(folder, baseline="base", arms={"base": []}, grid={"model.heads": [4, 2]})
    assert (load_study("mine").baseline, list(load_study("mine").arms)) == ("base", ["base", "heads4", "heads2"])
    write(folder, baseline="heads2", grid={"model.heads": [4, 2]})
    assert load_study("mine").baseline == "heads2"


def test_values_that_two_keys_share_are_told_apart_and_sizes_are_named_as_the_paper_prints_them() -> None:
    grid = {"model/norm": ["layer", "none"], "model/position": ["none"], "model.d_model": ["${width:512}"]}
    assert list(combine(FILE, grid)) == ["layer-position_none-d_model512", "norm_none-position_none-d_model512"]


def test_what_is_left_out_is_held_against_all_unless_the_study_says_otherwise(folder: Path) -> None:
    arms = {"base": [], "all": ALL}
    write(folder, baseline="base", arms=arms, leave_one_out="all", against={"all-without-norm": "base"})
    study = load_study("mine")
    assert list(study.arms) == ["base", "all", "all-without-residual", "all-without-norm", "all-without-position"]
    assert study.arms["all-without-norm"] == ["model/residual=pre", "model/position=rope"]
    assert [study.reference(arm) for arm in study.arms] == ["base", "base", "all", "base", "all"]


def test_an_arm_may_be_another_with_some_more_overrides_which_replace_those_of_the_same_keys(folder: Path) -> None:
    base = ["model/residual=pre", "model/norm=rms"]
    more = {"from": "base", "without": ["model/residual"], "with": ["model/norm=layer", "model/position=rope"]}
    write(folder, baseline="base", arms={"more": more, "base": base}, leave_one_out="more")
    study = load_study("mine")
    assert list(study.arms) == ["more", "base", "more-without-norm", "more-without-position"]
    assert study.arms["more"] == ["model/norm=layer", "model/position=rope"]
    assert study.arms["more-without-norm"] == ["model/norm=rms", "model/position=rope"]
    assert study.arms["more-without-position"] == ["model/norm=layer"]
    assert study.against == {"more-without-norm": "more", "more-without-position": "more"}


def test_an_arm_may_be_another_without_some_of_its_overrides(folder: Path) -> None:
    few = {"from": "all", "without": ["model/norm", "model/position=rope"]}
    write(folder, baseline="base", arms={"few": few, "base": [], "all": ALL})
    assert load_study("mine").arms == {"few": ["model/residual=pre"], "base": [], "all": ALL}


def test_an_arm_may_be_taken_from_one_that_is_taken_from_another_above_it(folder: Path) -> None:
    two, three = {"from": "all", "without": ["model/norm"]}, {"from": "two", "with": ["model.heads=2"]}
    write(folder, baseline="base", arms={"two": two, "three": three, "base": [], "all": ALL})
    arms = load_study("mine").arms
    assert (
        arms["three"]
        == [*arms["two"], "model.heads=2"]
        == ["model/residual=pre", "model/position=rope", "model.heads=2"]
    )
    write(folder, baseline="base", arms={"three": three, "two": two, "base": [], "all": ALL})
    with pytest.raises(UserError, match=r"arms\.three\.from: no arm 'two' is written out"):
        load_study("mine")


def test_an_arm_may_be_that_of_another_study_as_it_is_or_with_something_more(folder: Path) -> None:
    arms = {"A1": {"from": "table3/A1"}, "both": {"from": "table3/A1", "with": ["model/norm=rms"]}, "base": []}
    write(folder, baseline="base", arms=arms, leave_one_out=[])
    theirs = load_study("table3").arms["A1"]
    assert load_study("mine").arms == {"A1": theirs, "both": [*theirs, "model/norm=rms"], "base": []}


def test_the_example_of_the_guide_is_a_study_with_the_arms_that_it_names(folder: Path) -> None:
    guide = Path(__file__).parents[2].joinpath("docs/study.md").read_text()
    [text] = re.findall(r"```yaml\n(baseline: .*?)```", guide, flags=re.DOTALL)
    (folder / "study.yaml").write_text(text)
    arms = load_study("mine").arms
    assert arms["small_change"] == ["model/residual=pre"]
    assert arms["A1"] == load_study("table3").arms["A1"]
    named = {"norm-rms", "all-without-norm", "heads8-adam", "heads8-adamw", "heads4-adam", "heads4-adamw"}
    assert named <= set(arms)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"grid": [1]}, "grid must map config groups or keys to lists of values"),
        ({"grid": {}}, "grid must map config groups or keys to lists of values"),
        ({"grid": {"model.heads": 4}}, r"grid\.model\.heads must be a list of plain values, such as \[4, 8\], not 4"),
        ({"grid": {"model.heads": [[4]]}}, r"grid\.model\.heads must be a list of plain values"),
        (
            {"grid": {"budget.lr_factor": [date(2020, 1, 1), 2]}},
            r"grid\.budget\.lr_factor must be a list of plain values",
        ),
        ({"grid": {"model heads": [4]}}, "grid: 'model heads' is not a config group or key"),
        ({"grid": {"seed": [1, 2]}}, r"grid: seed cannot be set by an arm; leave seed: \[1, 2\] out"),
        ({"grid": {"model.heads": [4, 4]}}, "grid: two combinations would have the same name"),
        ({"grid": {"data.tsv": ["a/b.tsv"]}}, "grid: 'tsv_a/b.tsv' cannot name an arm"),
        ({"grid": {"model.heads": [4]}, "arms": {"heads4": []}}, "grid makes an arm heads4, and the study has one"),
        ({"leave_one_out": "al"}, "leave_one_out: no arm 'al' is written out: did you mean all"),
        ({"leave_one_out": {"from": "all"}}, "leave_one_out: no arm {'from': 'all'} is written out"),
        ({"leave_one_out": "one"}, "leave_one_out: the arm one needs two overrides or more"),
        ({"leave_one_out": ["all", "all"]}, "leave_one_out makes an arm all-without-residual, and the study has one"),
        ({"arms": {"x": {"from": "all"}}}, r"arms\.x must be a list of overrides, or \{from: ARM, without: \[KEY"),
        (
            {"arms": {"x": {"from": "al", "without": []}}},
            r"arms\.x\.from: no arm 'al' is written out: did you mean all",
        ),
        ({"arms": {"x": {"from": "table3/Z1"}}}, r"arms\.x\.from: table3 has no arm 'Z1'"),
        ({"arms": {"x": {"from": "no/A1"}}}, r"arms\.x\.from: there is no study 'no'"),
        ({"arms": {"x": {"from": "mine/all"}}}, r"arms\.x\.from: the studies mine take arms from each other"),
        (
            {"arms": {"x": {"from": "all", "without": ["model/nrom"]}}},
            r"arms\.x\.without: all has no override 'model/nrom': did you mean model/norm",
        ),
    ],
)
def test_a_mistake_is_told_by_file_and_key(content: dict[str, Any], told: str, folder: Path) -> None:
    arms = {"base": [], "one": ALL[:1], "all": ALL} | content.pop("arms", {})
    write(folder, baseline="base", arms=arms, **content)
    with pytest.raises(UserError, match=rf"mine/study\.yaml: {told}"):
        load_study("mine")
