"""A sweep whose jobs are one run says so, and one whose runs share a training trains once."""

import csv
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from tests import warm

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.files import write_json
from etude.launchers.dashboard import Dashboard
from etude.launchers.job import Job
from etude.launchers.shared import notes_on_shared
from etude.launchers.slots import startable
from etude.runs.run_dir import RunDir
from etude.runs.run_state import State


@pytest.fixture
def run_dirs(tmp_path: Path) -> dict[str, RunDir]:
    """Three runs: two of one training, and one that nobody has recorded a training of."""
    for name, training in {"one": "t1", "two": "t1", "old": ""}.items():
        (tmp_path / name).mkdir()
        if training:
            (tmp_path / name / "training.txt").write_text(training)
    return {name: RunDir(tmp_path / name) for name in ("one", "two", "old")}


def config_of(job: Sequence[str]) -> dict[str, Any]:
    return resolve(compose(job))


def test_jobs_that_are_one_run_are_told_with_the_keys_that_change_nothing(run_dirs: dict[str, RunDir]) -> None:
    jobs = [["seed=1", "trainer.micro_batches=1"], ["seed=1", "trainer.micro_batches=2"], ["seed=2"]]
    notes = [*notes_on_shared(jobs, [run_dirs["one"], run_dirs["one"], run_dirs["old"]], config_of)]
    assert notes == ["3 jobs are 2 runs, because trainer.micro_batches does not change a run"]


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (["model.heads=1", "model.heads=4"], ["model.heads=2", "model.heads=4"], "model.heads {}, 4"),
        (["model.dropout=0.1"], ["++model.dropout=1e-1"], "model.dropout {}, 0.1"),
        (["model/norm=rms", "model/norm=layer"], ["model/norm=layer", "model/norm=layer"], "model/norm {}, layer"),
    ],
)
def test_a_key_that_has_one_value_in_the_configs_is_not_said_to_change_nothing(
    one: list[str], other: list[str], reason: str, run_dirs: dict[str, RunDir]
) -> None:
    reason = f"several values typed for {reason.format('come to the same')}"
    [note] = notes_on_shared([one, other], [run_dirs["one"]] * 2, config_of)
    assert note == f"2 jobs are 1 run, because {reason}"
    both = [[*one, "trainer.micro_batches=1"], [*other, "trainer.micro_batches=2"]]
    [note] = notes_on_shared(both, [run_dirs["one"]] * 2, config_of)
    assert note == f"2 jobs are 1 run, because {reason}, and trainer.micro_batches does not change a run"


def test_runs_that_share_a_training_are_told_with_the_keys_that_change_no_weight(run_dirs: dict[str, RunDir]) -> None:
    jobs = [["decoding.beam=1"], ["decoding.beam=4"], ["seed=2"]]
    assert [*notes_on_shared(jobs, [*run_dirs.values()], config_of)] == [
        "3 runs share 2 trainings, for decoding.beam changes no weight"
    ]


def test_arms_that_came_out_alike_are_named(run_dirs: dict[str, RunDir]) -> None:
    jobs = [["experiment=mine/post", "seed=1"], ["experiment=mine/none", "seed=1"], ["experiment=mine/pre", "seed=1"]]
    assert [*notes_on_shared(jobs, [*run_dirs.values()], config_of)] == [
        "3 runs share 2 trainings, for the choice between mine/none and mine/post changes no weight"
    ]


def test_two_pairs_of_arms_that_came_out_alike_are_two_choices(run_dirs: dict[str, RunDir], tmp_path: Path) -> None:
    for name in ("three", "four"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "training.txt").write_text("t2")
    runs = [run_dirs["one"], run_dirs["two"], RunDir(tmp_path / "three"), RunDir(tmp_path / "four")]
    jobs = [[f"experiment=mine/{arm}"] for arm in ("post", "post_none", "pre", "pre_none")]
    assert [*notes_on_shared(jobs, runs, config_of)] == [
        "4 runs share 2 trainings, for the choice between mine/post and mine/post_none, or between mine/pre and "
        "mine/pre_none changes no weight"
    ]


def test_of_many_arms_some_are_named(run_dirs: dict[str, RunDir], tmp_path: Path) -> None:
    jobs, runs = [], []
    for arm in "abc":
        for number in range(2):
            (run := RunDir(tmp_path / f"{arm}{number}")).path.mkdir()
            run.training_file.write_text(arm)
            jobs.append([f"experiment=mine/{arm}{number}"])
            runs.append(run)
    assert [*notes_on_shared(jobs, runs, config_of)] == [
        "6 runs share 3 trainings, for the choice between mine/a0 and mine/a1, or between mine/b0 and mine/b1, and so "
        "on changes no weight"
    ]


def test_nothing_is_said_of_runs_that_share_nothing(run_dirs: dict[str, RunDir]) -> None:
    assert not [*notes_on_shared([["seed=1"], ["seed=2"]], [run_dirs["one"], run_dirs["old"]], config_of)]


def test_a_run_that_waits_for_the_training_of_another_says_so(
    make_run: Callable[..., RunDir], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    first = make_run("A1")
    second = RunDir(first.path.with_name("seed1-0123456789"))
    shutil.copytree(first.path, second.path)
    for run in (first, second):
        run.training_file.write_text("fedcba9876\n")
    job, training = Job(second), second.own_training
    training.path.mkdir(parents=True)
    with FileLock(training.lock_file):
        job.refresh_state()
        assert job.state is State.ELSEWHERE
        Dashboard([job]).elsewhere(job)
        assert "table3/A1 seed 1: waits for another run, which trains the same weights" in caplog.text
        write_json(training.trained_file, {"diverged": "the loss is nan at step 2"})
        job.refresh_state()
        assert job.state is State.WAITING, "nothing is left to train"


def test_one_run_of_a_training_begins_and_when_it_is_complete_all_the_others(make_run: Callable[..., RunDir]) -> None:
    runs = [make_run(arm) for arm in ("A1", "A2", "A3", "B")]
    for run in runs[:3]:
        run.training_file.write_text("shared\n")
    one, two, three, other = jobs = [Job(run) for run in runs]
    assert startable(jobs, []) == [one, other]
    assert startable([two, three, other], [one]) == [other]
    write_json(runs[0].own_training.trained_file, {"diverged": "the loss is nan at step 2"})
    assert startable([two, three, other], [one]) == [two, three, other]


@pytest.mark.slow
def test_a_sweep_over_beams_and_micro_batches_trains_once(tmp_path: Path) -> None:
    letters = "abcdefgh"
    rows = [" ".join(letters[(k * j + k // 8) % 8] for j in range(1, 3 + k % 6)) for k in range(1, 200)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row} {k % 8}\t{row} {k % 8}\n" for k, row in enumerate(rows)))
    words = [
        *("train", "-m", "decoding.beam=1,2,3", "trainer.micro_batches=1,2", "study=single,other", "logger=none"),
        *("data=files", "data.tsv=pairs.tsv", "data.holdout=4", "tokenizer.vocab_size=30", "budget=smoke"),
        *("model.d_model=8", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "decoding.max_len_offset=2"),
        *("trainer=cpu", "hydra.launcher.workers=2", "cache_dir=cache"),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [warm.python(), "-m", "etude", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "12 jobs are 6 runs, because trainer.micro_batches does not change a run" in done.stderr
    assert "6 runs share 1 training, for decoding.beam, study changes no weight" in done.stderr
    runs = [RunDir(file.parent) for file in sorted(tmp_path.glob("runs/*/base/seed1-*/result.json"))]
    assert len(runs) == 6
    assert len({run.training for run in runs}) == 1
    for run in runs:
        with run.metrics_file.open(newline="") as file:
            steps = [int(row["step"]) for row in csv.DictReader(file) if row["loss"]]
        assert steps == sorted(set(steps)), "no step was trained twice"
    assert sum("is trained already" not in run.log_file.read_text() for run in runs) == 1
