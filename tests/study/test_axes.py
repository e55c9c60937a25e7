"""The axes are read out of `conf/`, and agree with what Hydra makes of it."""

from etude.config.compose import compose
from etude.paths import shipped
from etude.study.arms import one_for_each
from etude.study.axes import axes, gloss

CONF = shipped("conf")


def test_an_axis_is_a_group_of_at_least_two_files_that_a_run_chooses_from():
    chosen = [group for group in compose().hydra.runtime.choices if not group.startswith(("hydra/", "experiment"))]
    assert {axis.group for axis in axes() if not axis.needs} == {
        group for group in chosen if len(list((CONF / group).glob("*.yaml"))) > 1
    }


def test_a_group_within_a_group_is_an_axis_that_needs_the_choice_which_brings_it():
    within = [axis for axis in axes() if axis.needs]
    assert ("model/decoder/alignment", "model/decoder=recurrent") in {(axis.group, axis.needs) for axis in within}
    for axis in within:
        assert axis.group not in compose().hydra.runtime.choices
        assert compose([axis.needs]).hydra.runtime.choices[axis.group] == axis.default


def test_the_values_are_the_files_and_the_default_comes_first():
    for axis in axes():
        assert set(axis.values) == {path.stem for path in (CONF / axis.group).glob("*.yaml")}, axis.group
        default = compose(axis.needs.split()).hydra.runtime.choices[axis.group]
        assert next(iter(axis.values)) == axis.default == default, axis.group


def test_a_value_whose_file_is_torn_is_a_value_and_left_to_whoever_chooses_it(tmp_path, monkeypatch):
    (tmp_path / "conf/model/norm").mkdir(parents=True)
    (tmp_path / "conf/model/norm/torn.yaml").write_text("\t- no\n")
    before = {axis.group for axis in axes()}
    monkeypatch.chdir(tmp_path)
    assert {axis.group for axis in axes()} == before
    assert "torn" in next(axis.values for axis in axes() if axis.group == "model/norm")
    arms, _ = one_for_each(tmp_path / "study.yaml", ["model/norm"], written={})
    assert "norm-torn" in arms, "a study of all values is refused when it is composed, by the name of the file"


def test_every_file_of_a_group_says_in_its_first_comment_what_it_is():
    files = [path.relative_to(CONF) for path in CONF.rglob("*.yaml") if path.parent != CONF]
    assert files
    for file in files:
        said = gloss(file.parent.as_posix(), file.stem)
        assert len(said) >= 8, file
        assert said[0] != "@", file
        assert f"# {said}" in (CONF / file).read_text(encoding="utf-8").splitlines()[:2], file
