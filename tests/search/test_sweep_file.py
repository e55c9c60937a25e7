import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache
from etude.config.freeze import freeze_all
from etude.errors import UserError
from etude.paths import shipped
from etude.search.search import Objective
from etude.search.sweep_file import (
    drawn_keys,
    objective_of,
    planned_runs,
    quote,
    runs_of,
    sweep_overrides,
    sweep_runs,
)
from etude.study.study import load_study

PARSER = OverridesParser.create()


def write(path: Path, parameters: Any, **more: Any) -> str:
    path.write_text(yaml.safe_dump({"program": "etude", "method": "grid", "parameters": parameters} | more))
    return str(path)


@settings(max_examples=200, deadline=None)
@given(st.text(st.one_of(st.sampled_from("\\'\"$,={}[]() :a1/.+-@%\n"), st.characters(codec="utf-8")), max_size=12))
def test_a_quoted_word_is_read_back_by_hydra_as_one_value_and_the_same(text: str) -> None:
    override = PARSER.parse_override(f"key={quote(text)}")
    value = override.value()
    assert not override.is_sweep_override()
    # What YAML holds as "1e-5" is a number, on W&B's command lines as on ours.
    assert value == text or not isinstance(value, str)


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.lists(st.integers())))
def test_a_quoted_number_keeps_its_value_and_type(value: Any) -> None:
    read = PARSER.parse_override(f"key={quote(value)}").value()
    assert read == value
    assert type(read) is type(value)


def test_parameters_become_one_multirun(tmp_path: Path) -> None:
    parameters = {
        "experiment": {"values": ["table3/base", "table3/A1"]},
        "model.dropout": {"value": 0.2},
        "seed": {"values": [1, 2]},
    }
    assert set(sweep_overrides(write(tmp_path / "s.yaml", parameters))) == {
        "experiment=table3/base,table3/A1",
        "model.dropout=0.2",
        "seed=1,2",
    }


def test_what_the_command_adds_is_kept(tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", {"seed": {"value": 1}}, command=["${env}", "etude", "train", "scale=small"])
    assert sweep_overrides(file) == ["seed=1", "scale=small"]


def test_a_study_is_the_sweep_over_its_arms() -> None:
    (overrides, seeds) = sweep_overrides("multi30k", ["seed=1,2"])
    assert overrides == "experiment=" + ",".join(f"multi30k/{arm}" for arm in load_study("multi30k").arms)
    assert seeds == "seed=1,2"


def test_a_sweep_file_comes_before_a_study_of_its_name() -> None:
    assert "seed=1" in sweep_overrides("table3")


def test_the_users_own_study_comes_before_a_sweep_file_of_etude_and_after_one_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("experiments/heads", "sweeps"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "experiments" / "heads" / "study.yaml").write_text("baseline: a\narms: {a: [], b: [model.heads=2]}\n")
    assert sweep_overrides("heads") == ["experiment=heads/a,heads/b"]
    assert "seed=1,2,3" in sweep_overrides("heads.yaml")
    write(tmp_path / "sweeps" / "heads.yaml", {"seed": {"value": 7}})
    assert sweep_overrides("heads") == ["seed=7"]


@pytest.mark.parametrize("typed", ["seed=7,8", "++seed=7", "+seed=7", "~seed"])
def test_what_the_user_types_wins_over_the_file(typed: str, tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", {"seed": {"values": [1, 2]}, "experiment": {"value": "table3/base"}})
    assert sweep_overrides(file, [typed, "scale=pocket"]) == ["experiment=table3/base", typed, "scale=pocket"]


@pytest.mark.parametrize(
    ("metric", "read"),
    [
        ({}, None),
        ({"name": "test/bleu", "goal": "maximize"}, Objective("test/bleu", maximize=True)),
        ({"name": "test/bleu"}, Objective("test/bleu", maximize=False)),  # as at W&B
        (
            {"name": "valid.perplexity", "goal": "minimize", "target": 60},
            Objective("valid.perplexity", maximize=False),
        ),
    ],
)
def test_the_metric_of_a_file_is_read_as_at_wandb(
    metric: dict[str, Any], read: Objective | None, tmp_path: Path
) -> None:
    more = {"metric": metric} if metric else {}
    assert objective_of(write(tmp_path / "s.yaml", {"seed": {"values": [1, 2]}}, **more)) == read


def test_a_study_names_no_metric() -> None:
    assert objective_of("table3") is None


def test_shipped_sweeps_of_table3_name_its_arms_and_those_of_a_row_the_baseline_too() -> None:
    of_table3 = load_study("table3").arms
    for name, row in (("table3", ""), ("heads", "A"), ("widths", "C")):
        arms = [f"table3/{arm}" for arm in of_table3 if arm == "base" or arm.startswith(row)]
        assert f"experiment={','.join(arms)}" in sweep_overrides(name)


def test_a_longer_key_is_another_key(tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", {"model.d_k": {"value": 2}})
    assert sweep_overrides(file, ["model=base"]) == ["model.d_k=2", "model=base"]


@pytest.mark.parametrize("name", ["sweeps/smoke.yaml", "smoke.yaml", "smoke"])
def test_shipped_sweeps_are_found_from_anywhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert sweep_overrides(name) == ["experiment=table3/base,table3/A1", "budget=smoke", "seed=1"]


def test_a_file_that_is_not_there_is_answered_with_the_path_of_the_shipped_one(tmp_path: Path) -> None:
    missing, ours = tmp_path / "table3.yaml", shipped("sweeps") / "table3.yaml"
    with pytest.raises(UserError, match=re.escape(f"there is no {missing}; the file of that name") + f".* is {ours}"):
        sweep_overrides(str(missing))


@pytest.mark.parametrize(
    ("typed", "nearest"),
    [("sweeps/tabel3.yaml", r"table3\.yaml"), ("tabel3", "table3 "), ("learning_rat", "learning_rate")],
)
def test_a_missing_file_is_answered_with_the_nearest_names_as_one_types_them(typed: str, nearest: str) -> None:
    with pytest.raises(UserError, match=rf"{typed} is neither a sweep file nor a study: did you mean {nearest}"):
        sweep_overrides(typed)


def test_one_arm_is_no_sweep_and_one_is_told_what_runs_it() -> None:
    with pytest.raises(UserError, match=r"table3/A1 is one arm of a study: `etude train experiment=table3/A1` runs it"):
        sweep_overrides("table3/A1")


def test_what_is_not_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("method: grid\nparameters: [1\nmore: 2\n")
    with pytest.raises(UserError, match=r"s\.yaml, line 3: this is not YAML"):
        sweep_overrides(str(file))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("just words", "needs parameters"),
        ("method: grid", "needs parameters"),
        ("method: grid\nparameters: {}", "needs parameters"),
        ("method: bays\nparameters: {seed: {value: 1}}", "method: bays is none of W&B's: write grid, random or bayes"),
        (
            "method: custom\nparameters: {seed: {value: 1}}",
            "method: custom needs a scheduler of W&B's: here it is grid",
        ),
        ("method: bayes\nparameters: {seed: {value: 1}}", "a search needs a number of runs: say run_cap=20"),
        ("method: grid\nparameters: {seed: 1}", r"parameters\.seed needs values"),
        (
            "method: grid\nparameters: {seed: {min: 1.0, max: 3.0}}",
            r"parameters\.seed: a grid takes values: .* uniform has",
        ),
        (
            "method: grid\nparameters: {seed: {distribution: categorical}}",
            r"parameters\.seed: categorical needs values: ",
        ),
        ("method: grid\nparameters: {seed: {distribution: constant}}", r"parameters\.seed: constant needs value: "),
        (
            "method: grid\nparameters: {seed: {distribution: uniform, value: 1}}",
            r"parameters\.seed: uniform takes no value:",
        ),
        (
            "method: random\nrun_cap: 1\nparameters: {seed: {distribution: normal, values: [1]}}",
            r"parameters\.seed: normal takes no values: leave",
        ),
        ("method: grid\nparameters: {seed: {values: []}}", r"parameters\.seed\.values must be a list"),
        ("method: grid\nparameters: {seed: {values: 3}}", r"parameters\.seed\.values must be a list"),
        (
            "method: grid\nparameters: {model: {parameters: {heads: {value: 1}}}, model.heads: {value: 2}}",
            r"model\.heads is there twice",
        ),
        ("method: grid\nparameters: {model: {parameters: {}}}", r"parameters\.model holds a mapping"),
        ("method: grid\nparameters: {seed: {value: 1, min: 2}}", r"parameters\.seed: min does not go with value"),
        (
            "method: random\nrun_cap: 1\nparameters: {seed: {values: [1], probabilites: [1]}}",
            r"probabilites does not go with values; did you mean probabilities\?",
        ),
        ("method: grid\nsearch_sed: 9\nparameters: {seed: {value: 1}}", "search_sed .* did you mean search_seed"),
        ("method: grid\nearly_terminat: {}\nparameters: {seed: {value: 1}}", "did you mean early_terminate"),
        ("method: grid\n7: {}\nparameters: {seed: {value: 1}}", "7 is not a key of a sweep file"),
        ("method: grid\nmetric: loss\nparameters: {seed: {value: 1}}", "metric needs a name"),
        ("method: grid\nmetric: {name: a, gaol: b}\nparameters: {seed: {value: 1}}", r"metric\.gaol .* mean goal"),
        ("method: grid\nmetric: {name: a, goal: max}\nparameters: {seed: {value: 1}}", r"metric\.goal is 'max'"),
        ("method: grid\nparameters: {model: {value: {heads: 1}}}", r"write each of its keys as model\.name"),
        (
            "method: random\nrun_cap: 2\nparameters: {budget: {lr_factor: {min: 0.1, max: 1.0}}}",
            r"parameters\.budget holds a mapping; write each of its keys as budget\.name",
        ),
        ("method: grid\nparameters: {1: {value: 1}}", "1 is not a config key"),
        ("method: grid\nparameters: {seed: {value: 1}, seed: {value: 2}}", "line 2: seed is in line 2 already"),
    ],
)
def test_a_file_that_is_no_sweep_is_refused_with_the_key(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(content)
    with pytest.raises(UserError, match=told):
        sweep_overrides(str(tmp_path / "s.yaml"))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"metric": {"name": "test.bleu", "goal": "maximize", "target": 60}}, "metric.target ends a search alone"),
        ({"metric": {"name": "test/bleu"}}, "metric.goal is minimize if nothing is said, and test/bleu is better the"),
        ({"command": ["etude", "train", "budget=smoke"]}, "W&B's agents pass a run no parameter"),
    ],
)
def test_what_may_not_be_meant_is_said(
    more: dict[str, Any], told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sweep_overrides(write(tmp_path / "s.yaml", {"seed": {"value": 1}}, **more))
    assert told in caplog.text


@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        ("metrics", [{"name": "a"}, {"name": "b"}], "several metrics stand in  search: {directions: "),
        ("controller", {"type": "local"}, "étude is the controller: leave it out"),
        ("scheduler", {"engine": "optuna"}, "étude asks for trials itself: leave it out"),
        ("job", "etude:latest", "it needs W&B Launch"),
        ("image_uri", "etude:1", "it needs W&B Launch"),
    ],
)
def test_what_only_wandb_can_do_is_refused_by_name(key: str, value: Any, instead: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"s\.yaml: {key}: {re.escape(instead)}"):
        sweep_overrides(write(tmp_path / "s.yaml", {"seed": {"value": 1}}, **{key: value}))


def test_keys_of_wandb_that_change_no_run_are_accepted_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    more = dict.fromkeys(("name", "description", "project", "entity", "apiVersion"), "x") | {"kind": "sweep"}
    metric = {"name": "test.bleu", "goal": "maximize", "impute": "worst"}
    file = write(tmp_path / "s.yaml", {"seed": {"value": 1}}, metric=metric, **more)
    assert sweep_overrides(file) == ["seed=1"]
    assert not caplog.text


@pytest.mark.parametrize("method", ["grid", "random"])
def test_a_default_of_the_command_leaves_a_swept_key_to_the_file(method: str, tmp_path: Path) -> None:
    parameters = {"model.dropout": {"values": [0.1, 0.2]}, "model/norm": {"values": ["layer", "rms"]}}
    command = ["etude", "train", "++model.dropout=0.3", "model/norm=rms", "seed=4", "${args_no_hyphens}"]
    whole = write(tmp_path / "s.yaml", parameters, method=method, run_cap=20, command=command)
    plain = write(tmp_path / "t.yaml", parameters, method=method, run_cap=20, command=[*command[:2], *command[-2:]])
    assert drawn_keys(whole) == (set() if method == "grid" else {*parameters})
    assert planned_runs(whole) == planned_runs(plain)
    assert {frozenset(run) for run in planned_runs(whole)} == {
        frozenset({"seed=4", f"model.dropout={dropout}", f"model/norm={norm}"})
        for dropout in (0.1, 0.2)
        for norm in ("layer", "rms")
    }


@pytest.mark.parametrize("parameter", [{"value": 0.1}, {"values": [0.1, 0.2]}, {"min": 0.1, "max": 0.2}])
def test_what_stands_after_the_parameters_wins_over_them_and_is_told_unless_the_user_types_another(
    parameter: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    method = "random" if "min" in parameter else "grid"
    command = ["etude", "train", "${args_no_hyphens}", "model.dropout=0.3"]
    file = write(tmp_path / "s.yaml", {"model.dropout": parameter}, method=method, run_cap=3, command=command)
    assert planned_runs(file) == [["model.dropout=0.3"]]
    assert sweep_overrides(file, ["model.dropout=0.5"])[-1] == "model.dropout=0.5"
    assert not caplog.text
    assert "model.dropout=0.3" in sweep_overrides(file)
    assert "model.dropout=0.3 stands after ${args...} in command and wins over parameters.model.dropout" in caplog.text


def test_what_a_command_sets_in_the_environment_is_set_for_the_runs_unless_the_user_types_another(
    tmp_path: Path,
) -> None:
    command = ["${env}", "CUDA_VISIBLE_DEVICES=0", "NAME=a b", "etude", "train", "${args_no_hyphens}"]
    file = write(tmp_path / "s.yaml", {"seed": {"value": 1}}, command=command)
    words = sweep_overrides(file, ["+hydra.job.env_set.NAME=c"])
    assert compose(words).hydra.job.env_set == {"CUDA_VISIBLE_DEVICES": "0", "NAME": "c"}
    assert compose(sweep_overrides(file)).hydra.job.env_set.NAME == "a b"


def test_nested_parameters_are_those_with_dotted_keys(tmp_path: Path) -> None:
    nested = {
        "model": {
            "parameters": {"heads": {"values": [1, 2]}, "attention": {"parameters": {"x": {"min": 0.0, "max": 1.0}}}}
        }
    }
    dotted = {"model.heads": {"values": [1, 2]}, "model.attention.x": {"min": 0.0, "max": 1.0}}
    one, other = (
        write(tmp_path / name, parameters, method="random", run_cap=5)
        for name, parameters in (("nested.yaml", nested), ("dotted.yaml", dotted))
    )
    assert drawn_keys(one) == {*dotted}
    assert planned_runs(one) == planned_runs(other)


def test_null_is_no_value_or_the_option_none_of_a_group(tmp_path: Path) -> None:
    parameters = {"model.d_k": {"values": [None, 8]}, "callbacks": {"values": [None, "ema"]}}
    file = write(tmp_path / "s.yaml", parameters)
    assert sweep_overrides(file) == ["callbacks=none,ema", "model.d_k=null,8"]
    drawn = {
        word
        for run in planned_runs(write(tmp_path / "s.yaml", parameters, method="random", run_cap=20))
        for word in run
    }
    assert drawn == {"model.d_k=null", "model.d_k=8", "callbacks=none", "callbacks=ema"}


def test_the_search_seed_may_stand_in_the_file(tmp_path: Path) -> None:
    seven, typed = search(tmp_path, search_seed=7), ["search_seed=8"]
    of_seven, of_eight = planned_runs(seven), planned_runs(seven, typed)
    assert of_seven == planned_runs(search(tmp_path), ["search_seed=7"])
    assert of_eight == planned_runs(search(tmp_path), typed)


def test_each_shipped_sweep_is_one_that_wandb_takes() -> None:
    for file in shipped("sweeps").glob("*.yaml"):
        content = yaml.safe_load(file.read_text())
        assert content["program"] == "etude"
        assert content["command"][:4] == ["${env}", "etude", "train", "${args_no_hyphens}"]
        assert set(content["parameters"]) >= {"experiment", "seed"}
        assert content["method"] == "grid" or {"run_cap", "metric"} <= set(content)


SEARCH = {
    "experiment": {"value": "table3/base"},
    "budget.lr_factor": {"distribution": "log_uniform_values", "min": 0.1, "max": 3.0},
    "model.dropout": {"values": [0.1, 0.2, 0.3]},
}


def search(tmp_path: Path, parameters: Any = SEARCH, **more: Any) -> str:
    return write(tmp_path / "search.yaml", parameters, method="random", run_cap=6, **more)


def test_a_random_search_is_handed_to_its_sweeper_with_what_is_not_drawn(tmp_path: Path) -> None:
    file = search(tmp_path)
    sweeper = ["hydra/sweeper=sweepfile", f"hydra.sweeper.file={file}"]
    assert sweep_overrides(file, ["seed=1,2"]) == [
        *sweeper,
        "hydra.sweeper.run_cap=6",
        "experiment=table3/base",
        "seed=1,2",
    ]
    words = sweep_overrides(file, ["run_cap=2", "search_seed=5", "budget.lr_factor=0.5"])
    typed = ["hydra.sweeper.run_cap=2", "hydra.sweeper.search_seed=5", "experiment=table3/base", "budget.lr_factor=0.5"]
    assert words == [*sweeper, *typed]


def test_a_grid_may_end_early(tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", {"seed": {"values": [1, 2, 3]}}, run_cap=2)
    assert sweep_overrides(file) == ["hydra/sweeper=sweepfile", "hydra.sweeper.run_cap=2", "seed=1,2,3"]
    assert sweep_runs(["seed=1,2,3"], run_cap=2) == [["seed=1"], ["seed=2"]]
    with pytest.raises(UserError, match="run_cap=0: it must be a whole number, 1 or more"):
        sweep_runs(["seed=1,2,3"], run_cap=0)


@pytest.mark.parametrize(
    ("more", "planned"),
    [
        ({}, ["0.5 5", "0.5 6", "0.5 7", "1.0 5", "1.0 6", "1.0 7"]),
        ({"run_cap": 5}, ["0.5 5", "0.5 6", "0.5 7"]),  # fewer would be no trial
    ],
)
def test_of_trials_that_are_means_over_seeds_a_plan_has_every_run(
    more: dict[str, Any], planned: list[str], tmp_path: Path
) -> None:
    parameters = {"budget.lr_factor": {"values": [0.5, 1.0]}, "seed": {"value": 5}}
    file = write(tmp_path / "s.yaml", parameters, search={"seeds": 3}, **more)
    assert planned_runs(file) == [
        [f"budget.lr_factor={rate}", f"seed={seed}"] for rate, seed in map(str.split, planned)
    ]


def test_the_same_seed_draws_the_same_runs_and_a_longer_search_goes_on(tmp_path: Path) -> None:
    file = search(tmp_path)
    six = sweep_runs(["experiment=table3/base"], file=file, run_cap=6)
    assert [len(run) for run in six] == [3] * 6
    assert len({tuple(run) for run in six}) == 6
    assert sweep_runs(["experiment=table3/base"], file=file, run_cap=9)[:6] == six
    assert sweep_runs(["experiment=table3/base"], file=file, run_cap=6, search_seed=2) != six


def test_a_typed_key_is_not_drawn_and_leaves_the_other_draws_as_they_were(tmp_path: Path) -> None:
    file = search(tmp_path)
    both = sweep_runs([], file=file, run_cap=4)
    typed = sweep_runs(["model.dropout=0.5"], file=file, run_cap=4)
    assert [run[1] for run in typed] == [run[0] for run in both]
    assert {run[0] for run in typed} == {"model.dropout=0.5"}


@pytest.mark.parametrize("written", ["budget.lr_factor", "+budget.lr_factor", "++budget.lr_factor"])
@pytest.mark.parametrize("typed", ["budget.lr_factor=0.5", "++budget.lr_factor=0.5"])
def test_a_typed_key_is_not_drawn_however_file_and_user_write_it(written: str, typed: str, tmp_path: Path) -> None:
    file = search(tmp_path, {written: {"min": 0.1, "max": 3.0}, "model.dropout": {"values": [0.1, 0.2]}})
    assert drawn_keys(file) == {"budget.lr_factor", "model.dropout"}
    assert drawn_keys(file, [typed]) == {"model.dropout"}
    assert all(run[0] == typed and "lr_factor" not in "".join(run[1:]) for run in planned_runs(file, [typed]))


def test_each_draw_is_run_with_every_typed_combination(tmp_path: Path) -> None:
    runs = sweep_runs(["seed=1,2"], file=search(tmp_path), run_cap=5)
    assert [run[0] for run in runs] == ["seed=1", "seed=2", "seed=1", "seed=2", "seed=1"]
    assert runs[0][1:] == runs[1][1:] != runs[2][1:]


def test_a_search_with_nothing_left_to_draw_is_a_grid(tmp_path: Path) -> None:
    typed = ["budget.lr_factor=0.5", "model.dropout=0.1,0.2"]
    assert sweep_runs(typed, file=search(tmp_path), run_cap=6) == [[typed[0], f"model.dropout={p}"] for p in (0.1, 0.2)]


def test_a_random_search_without_an_end_is_refused(tmp_path: Path) -> None:
    endless = write(tmp_path / "search.yaml", SEARCH, method="random", run_cap=None)
    for ask in (sweep_overrides, planned_runs):
        with pytest.raises(UserError, match=r"needs a number of runs: say run_cap=20"):
            ask(endless)
    with pytest.raises(UserError, match=r"needs a number of runs: say run_cap=20"):
        sweep_runs([], file=endless)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("run_cap", "it must be a whole number, 1 or more"),
        ("run_cap=", "run_cap=: it must be a whole number"),
        ("run_cap=[", "it must be a whole number"),
        ("run_cap=null", "it must be a whole number"),
        ("run_cap=many", "run_cap=many: it must be a whole number"),
        ("run_cap=0", "run_cap=0: it must be a whole number, 1 or more"),
        ("search_seed=x", "it must be a whole number, 0 or more"),
        ("search_seed=-1", "search_seed=-1: it must be a whole number, 0 or more"),
    ],
)
def test_whatever_stands_behind_run_cap_and_search_seed_is_a_number_or_refused(
    word: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        planned_runs(search(tmp_path), [word])


def test_a_plan_has_the_values_that_a_config_file_of_the_user_s_gives_the_sweeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "conf/search"
    group.mkdir(parents=True)
    (group / "mine.yaml").write_text("# @package _global_\nhydra: {sweeper: {params: {seed: '1,2', model.heads: 2}}}\n")
    monkeypatch.chdir(tmp_path)
    fixed = ["experiment=table3/base", "budget=smoke", "seed=1", "+search=mine"]  # the file's own seed is typed with it
    assert planned_runs("smoke", ["+search=mine"])[0] == ["model.heads=2", *fixed]
    assert {run[0] for run in planned_runs("modern", ["+search=mine"])} == {"seed=1", "seed=2"}


def test_a_plan_is_of_the_runs_that_the_sweep_would_launch(tmp_path: Path) -> None:
    file = search(tmp_path)
    drawn = sweep_runs(["experiment=table3/base", "seed=3"], file=file, run_cap=2, search_seed=5)
    assert planned_runs(file, ["run_cap=2", "search_seed=5", "seed=3"]) == drawn
    assert planned_runs("smoke", ["run_cap=1"]) == [["experiment=table3/base", "budget=smoke", "seed=1"]]


def test_the_runs_of_a_sweep_lie_where_they_are_frozen_however_they_were_asked_for(tmp_path: Path) -> None:
    where = [f"runs_dir={tmp_path}", "data.train_pairs=50"]
    planned = runs_of("smoke", where)
    assert [words for words, _ in planned] == planned_runs("smoke", where)
    assert [run for _, run in planned] == freeze_all([words for words, _ in planned], ConfigCache())
    asked_otherwise = runs_of("smoke", [*where, "scale=pocket", "trainer=cpu", "logger=none"])
    assert [run for _, run in asked_otherwise] == [run for _, run in planned]
    with pytest.raises(UserError, match="budgt"):
        runs_of("smoke", [*where, "budgt=smoke"])


def test_what_a_search_draws_and_nobody_typed_is_random(tmp_path: Path) -> None:
    file = search(tmp_path)
    drawn = drawn_keys(file)
    assert drawn
    typed = [f"{key}={1}" for key in drawn]
    assert drawn_keys(file, typed) == drawn_keys("smoke") == set()


def test_a_grid_lists_whole_and_rounded_numbers(tmp_path: Path) -> None:
    parameters = {
        "model.heads": {"distribution": "int_uniform", "min": 1, "max": 3},
        "model.dropout": {"distribution": "q_uniform", "min": 0.0, "max": 0.2, "q": 0.1},
    }
    written = sweep_overrides(write(tmp_path / "s.yaml", parameters))
    assert {*written} == {"model.heads=1,2,3", "model.dropout=0.0,0.1"}
