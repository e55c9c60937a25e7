"""What Hydra's own sweepers and callbacks are told of a sweep whose runs have processes of their own."""

import json
import os
import sys
from importlib import import_module
from math import inf, isinf
from pathlib import Path

import pytest
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins

import etude.cli.main
import etude.launch.slots
import hydra_plugins
from etude.cli.train import main
from etude.config.compose import compose
from etude.config.resolvers import register
from etude.errors import UserError
from etude.launch.sweep import SweepFailed
from etude.store.run_dir import RunDir

CALLBACK = """
from hydra.experimental.callback import Callback

told = []

class Note(Callback):
    def on_multirun_start(self, config, **kwargs):
        told.append(("sweep begins",))

    def on_job_start(self, config, *, task_function, **kwargs):
        told.append(("begins", config.seed, config.hydra.job.env_set.COLOUR))

    def on_job_end(self, config, job_return, **kwargs):
        told.append(("ended", config.seed, job_return.status.name, job_return._return_value))

    def on_multirun_end(self, config, **kwargs):
        told.append(("sweep ended",))
"""
SWEEPER = """
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

returned = []

class Searching(BasicSweeper):
    '''As one of Hydra's, it goes by what the jobs return, and takes a failed one as it is.'''

    def __init__(self, direction):
        super().__init__(max_batch_size=None)

    def sweep(self, arguments):
        batches = [[f"seed={seed}"] for seed in (1, 2, 3)]
        for job in self.launcher.launch(batches, initial_job_idx=0):
            returned.append(job._return_value)
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Types `etude train -m WORDS`; run 1 finds 10, run 2 diverges, and run 3 fails."""
    seen = {}

    def run_side_by_side(runs, slots, **how):
        seen["environment"] = dict(os.environ)
        for run in runs:
            seed = run.config()["seed"]
            result = {"valid": {"perplexity": 10.0 if seed == 1 else float("nan")}, "test": {"bleu": 30}}
            if seed < 3:
                run.write_result(result | ({"diverged": "the loss is nan"} if seed == 2 else {}))
        if any(not run.finished for run in runs):
            raise SweepFailed("1 of 3 runs failed")

    (tmp_path / "noting.py").write_text(CALLBACK)
    (tmp_path / "hydra_plugins").mkdir()
    (tmp_path / "hydra_plugins" / "searching.py").write_text(SWEEPER)
    config = tmp_path / "conf/hydra/sweeper/searching.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("_target_: hydra_plugins.searching.Searching\ndirection: minimize\n")
    register()
    monkeypatch.setattr(etude.launch.slots, "run_side_by_side", run_side_by_side)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("noting", "hydra_plugins.searching"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(hydra_plugins, "searching", raising=False)
    Plugins.instance().register(import_module("hydra_plugins.searching").Searching)  # those of before are known already

    def typed(*words):
        try:
            main(["-m", *words])
        finally:
            GlobalHydra.instance().clear()
        return seen

    return typed


NOTED = ["+hydra.callbacks.note._target_=noting.Note", "+hydra.job.env_set.COLOUR=red"]


def test_callbacks_of_hydra_are_told_of_every_job_and_what_it_returned(sweep):
    sweep("seed=1,2", *NOTED)
    import noting

    assert noting.told == [
        ("sweep begins",),
        ("begins", 1, "red"),
        ("begins", 2, "red"),
        ("ended", 1, "COMPLETED", 10.0),
        ("ended", 2, "COMPLETED", inf),
        ("sweep ended",),
    ]


def test_callbacks_are_told_of_a_failed_job_too_and_the_exit_status_is_1(sweep):
    with pytest.raises(SystemExit, match="1"):
        etude.cli.main.main(["train", "-m", "seed=1,3", *NOTED])
    GlobalHydra.instance().clear()
    import noting

    *_, done, failed = noting.told
    assert done == ("ended", 1, "COMPLETED", 10.0)
    assert failed[:3] == ("ended", 3, "FAILED")
    assert isinstance(failed[3], SweepFailed)


def test_the_environment_of_a_job_is_that_of_the_processes_and_of_no_other(sweep):
    assert sweep("seed=1", *NOTED, "+hydra.job.env_set.ETUDE_CACHE=there")["environment"]["COLOUR"] == "red"
    assert "COLOUR" not in os.environ
    [run] = Path("runs").glob("single/base/seed1-*")
    assert RunDir(run).config()["cache_dir"] == "there"


def test_a_sweeper_of_hydra_s_gets_the_objective_of_each_run_and_what_ended_the_others(sweep):
    sweep("hydra/sweeper=searching")
    first, second, third = sys.modules["hydra_plugins.searching"].returned
    assert (first, second) == (10.0, inf)
    assert isinstance(third, SweepFailed)


def test_the_objective_is_what_the_key_names_and_the_worst_is_the_lowest_where_the_highest_is_sought(sweep):
    sweep("hydra/sweeper=searching", "objective=test.bleu", "hydra.sweeper.direction=maximize")
    first, second, _ = sys.modules["hydra_plugins.searching"].returned
    assert first == 30
    assert isinf(second)
    assert second < 0


def test_an_objective_that_no_result_has_is_told_with_the_nearest(sweep):
    with pytest.raises(UserError, match=r"objective=valid.ppl is not a number .* did you mean valid.perplexity"):
        sweep("seed=1", "objective=valid.ppl")


def test_a_sweeper_finds_a_folder_to_write_to(sweep, tmp_path):
    sweep("seed=1")
    assert (tmp_path / "runs" / ".multirun").is_dir()


def write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


HERE = "# @package _global_\ndefaults:\n  - override /hydra/launcher: submitit_local\n"


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("experiment/mine.yaml", HERE, ["experiment=mine"]),
        ("machine/mine.yaml", HERE, ["+machine=mine"]),
        ("debug/mine.yaml", HERE, ["debug=mine"]),
        ("mine.yaml", "defaults: [train, override hydra/launcher: submitit_local, _self_]", ["-cn", "mine"]),
    ],
)
def test_the_launcher_that_a_file_of_the_user_s_chooses_wins_over_ours_and_what_is_typed_over_both(
    file, content, words, tmp_path, monkeypatch, capsys
):
    write(tmp_path / "conf" / file, content)
    monkeypatch.chdir(tmp_path)

    def launcher(*typed):
        main([*words, *typed, "--cfg", "hydra", "--package", "hydra.runtime.choices"])
        GlobalHydra.instance().clear()
        return yaml.safe_load(capsys.readouterr().out)["hydra/launcher"]

    assert (launcher(), launcher("hydra/launcher=ray")) == ("submitit_local", "ray")


def test_the_launcher_that_an_arm_of_a_study_chooses_wins_over_ours(tmp_path, monkeypatch):
    arms = "arms: {base: [], far: [hydra/launcher=submitit_local]}"
    write(tmp_path / "experiments/mine/study.yaml", f"title: Mine\nbaseline: base\n{arms}\n")
    monkeypatch.chdir(tmp_path)
    chosen = [compose([f"experiment=mine/{arm}"]).hydra.runtime.choices["hydra/launcher"] for arm in ("base", "far")]
    assert chosen == ["slots", "submitit_local"]


PARAMS = "# @package _global_\nhydra: {{mode: MULTIRUN, sweeper: {{params: {{seed: '1,2', {}, arm: x}}}}}}"


@pytest.mark.usefixtures("sweep")
@pytest.mark.parametrize(
    ("words", "seeds", "heads", "arm"),
    [
        (["+search=mine"], {1, 2}, {1, 2}, "x"),
        (["-m", "+search=nested"], {1, 2}, {1, 2}, "x"),
        (["+search=mine", "seed=1"], {1}, {1, 2}, "x"),
        (["+search=mine", "model.heads=8", "arm=y"], {1, 2}, {8}, "y"),
        (["+search=mine", "hydra.sweeper.params.seed=1"], {1}, {1, 2}, "x"),
        (["+search=mine", "hydra/sweeper=basic", "model.heads=4"], {1, 2}, {4}, "x"),
        (["-m", "hydra.sweeper.params={seed: '1,2'}"], {1, 2}, {4}, "base"),
    ],
)
def test_params_of_hydra_s_sweeper_are_swept_in_a_file_or_typed_and_keys_that_are_typed_win(
    words, seeds, heads, arm, tmp_path
):
    write(tmp_path / "conf/search/mine.yaml", PARAMS.format("model.heads: '1, 2'"))
    write(tmp_path / "conf/search/nested.yaml", PARAMS.format("model: {heads: '1, 2'}"))
    with pytest.raises(SystemExit, match="0"):
        etude.cli.main.main(["train", *words])
    GlobalHydra.instance().clear()
    made = [RunDir(file.parent).config() for file in tmp_path.glob("runs/*/*/*/config.yaml")]
    found = sorted((config["arm"], config["seed"], config["model"]["heads"]) for config in made)
    assert found == sorted((arm, seed, some) for seed in seeds for some in heads)


def test_training_one_run_returns_its_objective_to_hydra(tmp_path, monkeypatch, sweep):
    sweep("seed=1")
    [result] = Path("runs").glob("*/*/*/result.json")
    scores = {"perplexity": 1.0, "bleu": 2.0, "paper_bleu": 3.0, "signature": "", "paper_signature": ""}
    whole = {"valid": {"perplexity": 10.0}, "test": scores, "parameters": 1, "steps": 1, "seconds": 1}
    result.write_text(json.dumps(whole))
    main(["seed=1", "+hydra.callbacks.note._target_=noting.Note", "+hydra.job.env_set.COLOUR=red"])
    GlobalHydra.instance().clear()
    import noting

    assert noting.told[-1] == ("ended", 1, "COMPLETED", 10.0)
