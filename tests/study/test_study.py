import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from etude.config.compose import compose
from etude.errors import UserError
from etude.paths import shipped
from etude.search.sweep_file import find_file, names_file
from etude.study.arm_names import arm_names
from etude.study.criteria import Criteria
from etude.study.study import leaves, load_study, study_names, value_at
from etude.yaml_file import read_yaml

STUDY = "baseline: base\narms:\n  base: []\n  A1: [model.heads=1]\n"


def test_table3_has_the_twenty_rows_of_the_paper_and_a_printed_number_for_each() -> None:
    study = load_study("table3")
    assert list(study.arms) == (
        ["base", "A1", "A2", "A3", "A4", "B1", "B2"]
        + [f"C{i}" for i in range(1, 8)]
        + ["D1", "D2", "D3", "D4", "E1", "big"]
    )
    assert study.arms[study.baseline] == []
    assert list(study.paper.arms) == list(study.arms)
    assert all(row["ppl"] and row["bleu"] for row in study.paper.arms.values())
    assert "1706.03762" in study.paper.source


def test_an_arm_changes_what_its_row_of_the_table_shows_and_nothing_else() -> None:
    arms = load_study("table3").arms
    assert arms["A4"] == ["model.heads=${heads:32}"]
    assert arms["B1"] == ["model.d_k=${head_dim:16}"]
    assert arms["C4"] == ["model.d_model=${width:256}"]
    assert all(len(overrides) == 1 for arm, overrides in arms.items() if arm not in ("base", "big"))
    assert arms["big"] == ["model=big", "budget.max_steps=${steps:300000}"]


def test_the_users_own_study_is_found_and_comes_before_a_shipped_one_of_the_same_name(folder: Path) -> None:
    (folder / "study.yaml").write_text(f"title:\n{STUDY[STUDY.index('baseline') :]}")
    assert {"mine", "table3"} <= set(study_names())
    assert load_study("mine").arms == {"base": [], "A1": ["model.heads=1"]}
    assert (load_study("mine").title, load_study("mine").paper.arms) == ("mine", {})
    folder.rename(folder.with_name("table3"))
    assert list(load_study("table3").arms) == ["base", "A1"]


def test_the_arms_there_are_depend_on_where_one_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "study.yaml").write_text(STUDY)
    assert "mine/A1" in arm_names()
    assert compose(["experiment=mine/A1"]).model.heads == 1
    (elsewhere := folder / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    assert "mine/A1" not in arm_names()
    assert "table3/A1" in arm_names()


def test_runs_typed_one_by_one_are_no_study_and_one_is_told_what_compares_them() -> None:
    with pytest.raises(UserError, match=r"single is not a study.*`etude diff RUN RUN`.*experiments/NAME/study\.yaml"):
        load_study("single")


def test_an_arm_that_is_taken_from_another_study_follows_its_file(folder: Path) -> None:
    other = folder.with_name("other")
    other.mkdir()
    (folder / "study.yaml").write_text(f"{STUDY}  B1: {{from: other/A1}}\n")
    for heads in (1, 2):
        (other / "study.yaml").write_text(STUDY.replace("heads=1", f"heads={heads}"))
        os.utime(other / "study.yaml", (heads, heads))
        assert load_study("mine").arms["B1"] == [f"model.heads={heads}"]


def test_a_study_says_whom_an_arm_is_held_against_how_many_seeds_and_what_counts(folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY)
    study = load_study("mine")
    assert (study.reference("A1"), study.seeds, study.criteria) == ("base", None, None)
    arms = "baseline: base\narms: {base: [], A1: [], B1: []}\n"
    (folder / "study.yaml").write_text(f"{arms}against: {{B1: A1}}\nseeds: 3\nagreement: {{large: 0.03, margin: 1}}\n")
    study = load_study("mine")
    assert (study.reference("A1"), study.reference("B1"), study.seeds) == ("base", "A1", 3)
    assert study.criteria == Criteria(large=0.03, margin=1)


def test_a_study_that_cannot_be_read_is_in_nobody_elses_way(folder: Path) -> None:
    (folder / "study.yaml").write_text("baseline: base\narms: {base: [], small: model.heads=1}\n")
    assert compose(["experiment=table3/A1"]).arm == "A1"
    with pytest.raises(UserError, match=r"mine/study\.yaml: arms\.small must be a list of overrides"):
        compose(["experiment=mine/small"])


@pytest.mark.parametrize(
    ("name", "known"),
    [("tabel3", "table3"), ("", "axes, .*mine"), ("../experiments/mine", "axes"), (".", "axes, .*mine")],
)
def test_an_unknown_study_is_answered_with_the_names_there_are(name: str, known: str, folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY)
    with pytest.raises(UserError, match=f"there is no study .*{known}"):
        load_study(name)


@pytest.mark.parametrize("name", ["learning_rate", "sweeps/learning_rate.yaml"])
def test_a_sweep_that_is_taken_for_a_study_is_told_from_it(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sweeps").mkdir()
    (folder / "sweeps" / "learning_rate.yaml").touch()
    monkeypatch.chdir(folder)
    with pytest.raises(UserError, match=f"{name} is a sweep, not a study: `etude report {name}`"):
        load_study(name)


def test_the_file_of_a_study_is_answered_with_the_name_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("experiments/mine/study.yaml")
    file.parent.mkdir(parents=True)
    file.touch()
    for read in (load_study, find_file):
        with pytest.raises(UserError, match=r"mine/study.yaml is the file of a study, .* its folder: mine"):
            read(str(file))


def test_a_sweep_outside_the_folder_of_sweeps_is_told_as_a_report_takes_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mine.yaml").touch()
    monkeypatch.chdir(folder)
    assert not names_file("mine")
    assert names_file("mine.yaml")
    with pytest.raises(UserError, match=r"mine is a sweep, not a study: `etude report mine\.yaml` shows its runs"):
        load_study("mine")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"study\.yaml: it must hold keys with their values; there are .*baseline"),
        ("baseline: base", r"study\.yaml: the key 'arms' is missing"),
        ("baseline: base\narmz: {}", r"study\.yaml: unknown key 'armz': did you mean arms"),
        ("baseline: base\narms: []", r"study\.yaml: arms must map"),
        ("baseline: bas\narms: {base: []}", r"baseline: the study has no arm 'bas': did you mean base"),
        ("baseline: [base]\narms: {base: []}", "baseline: the study has no arm"),
        ("baseline: base\narms: {base: [], 1: []}", "1 cannot name an arm; write it in quotes"),
        ("baseline: base\narms: {base: [], a/b: []}", "'a/b' cannot name an arm"),
        ("baseline: base\narms: {base: [], on: []}", "True cannot name an arm; write it in quotes"),
        (
            "baseline: base\narms: {base: [], A1: [seed=3]}",
            r"arms\.A1: seed cannot be set by an arm; leave seed=3 out",
        ),
        ("baseline: base\narms: {base: [], A1: [+study=x]}", r"arms\.A1: study cannot be set by an arm"),
        ("baseline: base\narms: {base: [], A1: [debug=overfit]}", r"arms\.A1: debug cannot be set by an arm"),
        ("baseline: base\narms: {base: [], A1: [arm=x]}", r"arms\.A1: arm cannot be set by an arm"),
        ("baseline: base\narms: {base: , A1: []}", r"arms\.base must be a list of overrides"),
        ("baseline: base\narms: {base: [model.heads: 1]}", r"arms\.base: \{'model\.heads': 1\} is not an override"),
        ("baseline: base\narms: {base: [two words]}", r"arms\.base: 'two words' is not an override"),
        ("baseline: base\narms: {base: []}\ncolumns: {N: 3}", "columns must map each printed header"),
        (f"{STUDY}against: [A1]", "against must map an arm to the one it is held against"),
        (f"{STUDY}against: {{A1: bass}}", "against: the study has no arm 'bass': did you mean base"),
        (f"{STUDY}against: {{A2: base}}", "against: the study has no arm 'A2': did you mean A1"),
        (f"{STUDY}against: {{base: A1}}", r"against\.base: the baseline, or an arm itself"),
        (f"{STUDY}against: {{A1: A1}}", r"against\.A1: the baseline, or an arm itself"),
        (f"{STUDY}against: {{A1: [base]}}", r"against: the study has no arm \['base'\]"),
        (f"{STUDY}agreement: {{1: 2, large: 0.1}}", "agreement must hold margin, and large or deviations"),
        (
            f"{STUDY}pilots: [101]\ntune: {{optimizer: [adam, adamw]}}",
            r"tune\.optimizer: what is tuned is a config key",
        ),
        (f"{STUDY}pilots: [101]\ntune: {{model/norm: [rms]}}", r"tune\.model/norm: what is tuned is a config key"),
        (f"{STUDY}pilots: [101]\ntune: {{1.5: [1]}}", r"tune\.1\.5: what is tuned is a config key"),
        (f"{STUDY}pilots: [101]\ntune: {{budget.lr_factor: [[1]]}}", r"tune\.budget\.lr_factor: .* plain values"),
        (
            "baseline: base\narms: {base: [], A1: [+budget.lr_factor=2]}\npilots: [101]\ntune: {budget.lr_factor: [1]}",
            r"tune: the arm A1 sets budget\.lr_factor itself, .*: take the key out of tune, or out of the arm",
        ),
        (f"{STUDY}seeds: 0", "seeds must be a whole number of runs an arm, such as 3, not 0"),
        (f"{STUDY}seeds: three", "seeds must be a whole number"),
        (f"{STUDY}agreement: 0.03", "agreement must hold margin, and large or deviations"),
        (f"{STUDY}agreement: {{large: 0.03}}", "agreement must hold margin, and large or deviations"),
        (f"{STUDY}agreement: {{large: 0.03, margin: 0}}", r"agreement\.margin must be above 0, not 0"),
        (f"{STUDY}agreement: {{large: 0.03, deviations: 3, margin: 0.05}}", "agreement must hold margin, and large or"),
        ("baseline: base\narms:\n  A1: []\n  A1: [x=1]", r"study\.yaml, line 4: A1 is in line 3 already"),
        ("baseline: base\narms:\n  A1: [", r"study\.yaml, line 3: this is not YAML"),
    ],
)
def test_a_study_file_that_is_wrong_is_told_by_file_and_key(text: str, told: str, folder: Path) -> None:
    (folder / "study.yaml").write_text(text)
    with pytest.raises(UserError, match=told):
        load_study("mine")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("source: me", r"paper\.yaml: the key 'arms' is missing"),
        ("arms: {A2: {ppl: 1}}", r"paper\.yaml: arms: the study has no arm 'A2': did you mean A1"),
        ("arms: {A1: {ppl: low}}", r"paper\.yaml: arms\.A1 must hold numbers"),
        ("arms: {A1: {ppl: .nan}}", r"paper\.yaml: arms\.A1 must hold numbers"),
        ("arms: {A1: {bleu: 0, ppl: -5.0}}", r"paper\.yaml: arms\.A1\.ppl: -5 has no logarithm: give the number"),
        ("arms: {A1: {1: 2.0}}", r"paper\.yaml: arms\.A1: the study has no metric 1: did you mean"),
        ("arms: {A1: {blue: 25.8}}", r"paper\.yaml: arms\.A1: the study has no metric 'blue': did you mean bleu"),
    ],
)
def test_a_paper_file_that_is_wrong_is_told_by_file_and_key(text: str, told: str, folder: Path) -> None:
    (folder / "study.yaml").write_text(STUDY)
    (folder / "paper.yaml").write_text(text)
    with pytest.raises(UserError, match=told):
        load_study("mine")


def test_what_is_no_text_or_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("naïve".encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8"):
        read_yaml(tmp_path / "latin.yaml")
    with pytest.raises(UserError, match="cannot read"):
        read_yaml(tmp_path / "none.yaml")


def test_our_reader_agrees_with_plain_yaml_on_every_shipped_study() -> None:
    files = [*shipped("experiments").glob("*/*.yaml")]
    assert {"axes", "table3"} <= {file.parent.name for file in files}
    for file in files:
        assert read_yaml(file) == yaml.safe_load(file.read_text())


def test_a_dotted_key_reaches_into_groups_and_is_none_where_nothing_stands() -> None:
    config = {"model": {"attention": {"d_k": 64}}, "choices": {"model/position": "learned"}}
    assert value_at(config, "model.attention.d_k") == 64
    assert value_at(config, "choices.model/position") == "learned"
    assert value_at(config, "model.attention.d_k.deeper") is None
    assert value_at(config, "nothing.here") is None


@pytest.mark.parametrize("ask", [load_study, find_file])
def test_a_study_that_ends_in_yml_or_lies_in_another_folder_is_pointed_at(
    ask: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=rf"\({tmp_path}, where you stand, has no folder experiments\)$"):
        ask("mine")
    (tmp_path / "experiments/mine").mkdir(parents=True)
    (tmp_path / "experiments/mine/study.yml").write_text("baseline: a\narms: {a: []}\n")
    with pytest.raises(UserError, match=r"mine/study\.yml is not read: end its name in \.yaml\)$"):
        ask("mine")


def test_leaves_are_the_values_by_their_dotted_keys():
    config = {"seed": 1, "choices": {"model/norm": "rms"}, "model": {"ffn": {"d_ff": 8}, "empty": {}, "dims": [2]}}
    assert [*leaves(config)] == [("seed", 1), ("choices.model/norm", "rms"), ("model.ffn.d_ff", 8), ("model.dims", [2])]
    assert all(value_at(config, key) == value for key, value in leaves(config))
