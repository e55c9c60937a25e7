"""What a sweep makes of its runs, wherever they are started."""

import csv
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from filelock import FileLock
from tests import warm
from tests.letters import TEXT, TINY, write_pairs

from etude.files import write_json
from etude.launch.dashboard import Dashboard
from etude.launch.interrupts import Interrupts
from etude.launch.job import Job
from etude.launch.sweep import SweepFailed, run_all, startable
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, write_stop

Make = Callable[..., RunDir]


class Elsewhere:
    """A launcher whose runs end as told, a run of several outcomes after several starts; True is a result."""

    is_here = False

    def __init__(self, **outcomes: Iterable[State]) -> None:
        self.outcomes = {arm: iter(states) for arm, states in outcomes.items()}
        self.launched: list[str] = []
        self.cancelled: list[str] = []

    def submit(self, jobs: Sequence[Job]) -> list[Job]:
        for job in jobs:
            job.refresh_state()
            if job.state is State.WAITING:
                self.launched.append(arm_of(job))
                job.state, job.attempts = State.RUNNING, job.attempts + 1
        return [*jobs]

    def wait(self, jobs: Sequence[Job], signals: Interrupts) -> list[Job]:
        for job in jobs:
            job.state = next(self.outcomes[arm_of(job)])
            if job.state is State.FINISHED:
                job.run_dir.write_result({"test": {}})
        return [job for job in jobs if job.state is not State.RUNNING]

    def cancel(self, jobs: Sequence[Job], signals: Interrupts, show: Dashboard) -> None:
        self.cancelled += map(arm_of, jobs)


def arm_of(job: Job) -> str:
    return job.run_dir.path.parts[-2]


def test_a_run_that_is_taken_again_and_again_is_come_back_to_every_time(make_run: Make) -> None:
    launcher = Elsewhere(A1=[State.ELSEWHERE, State.ELSEWHERE, State.FINISHED])
    run_all([Job(make_run("A1"))], launcher)
    assert launcher.launched == ["A1"] * 3


def test_fail_fast_ends_at_the_first_failure_and_cancels_what_was_launched(make_run: Make) -> None:
    launcher = Elsewhere(A1=[State.FAILED], A2=[State.RUNNING])
    with pytest.raises(SweepFailed, match=r"(?s)1 of 2 runs failed.*1 were stopped or not begun"):
        run_all([Job(make_run("A1")), Job(make_run("A2"))], launcher, outlives=True, fail_fast=True)
    assert launcher.cancelled == ["A2"]


def test_a_sweep_of_which_a_run_was_stopped_has_not_succeeded(make_run: Make) -> None:
    launcher = Elsewhere(A1=[State.PAUSED], A2=[State.FINISHED])
    with pytest.raises(SweepFailed, match=r"1 of 2 runs were stopped.*table3/A1 seed 1"):
        run_all([Job(make_run("A1")), Job(make_run("A2"))], launcher)


def test_a_run_that_fails_is_tried_again_behind_those_that_wait(make_run: Make) -> None:
    launcher = Elsewhere(A1=[State.FAILED, State.FINISHED], A2=[State.FINISHED])
    run_all([Job(make_run("A1"), retries=1), Job(make_run("A2"))], launcher)
    assert launcher.launched == ["A1", "A2", "A1"]


class Asked:
    """A source of runs that promotes the first one once; it notes the room that there is, and what it is told."""

    def __init__(self, *runs: RunDir) -> None:
        self.runs, self.rooms, self.told = [*runs], list[int](), list[tuple[str, State]]()

    def more(self, room: int) -> list[tuple[RunDir, str]]:
        self.rooms.append(room)
        given, self.runs = self.runs[:room], self.runs[room:]
        return [(run, run.path.parent.name) for run in given]

    def watch(self) -> None:
        pass

    def figures(self) -> dict[RunDir, dict[str, str]]:
        return {}

    def ended(self, run: RunDir, state: State, reason: str) -> None:
        self.told.append((run.path.parent.name, state))
        if state is State.PAUSED:
            self.runs.append(run)


def test_a_source_is_asked_as_soon_as_there_is_room_and_told_how_each_run_ends(make_run: Make) -> None:
    launcher = Elsewhere(A1=[State.PAUSED, State.FINISHED], A2=[State.RUNNING, State.PRUNED], A3=[State.FINISHED])
    source = Asked(make_run("A1"), make_run("A2"), make_run("A3"))
    jobs: list[Job] = []
    run_all(jobs, launcher, source=source, at_once=2)
    finished, pruned = State.FINISHED, State.PRUNED
    assert source.told == [("A1", State.PAUSED), ("A2", pruned), ("A3", finished), ("A1", finished)]
    assert max(source.rooms) == 2
    assert launcher.launched == ["A1", "A2", "A3", "A1"]
    assert {arm_of(job): job.state for job in jobs} == {"A1": finished, "A2": pruned, "A3": finished}


def test_what_a_search_has_pruned_does_not_go_on_when_another_run_has_failed(make_run: Make) -> None:
    launcher = Elsewhere(A1=[State.PRUNED], A2=[State.FAILED])
    with pytest.raises(SweepFailed, match="the others have ended; the same command goes on with the search"):
        run_all([], launcher, source=Asked(make_run("A1"), make_run("A2")), at_once=2)


def test_a_source_is_told_of_a_run_that_stands_where_it_is_to_stop(make_run: Make) -> None:
    """Its job went on when the sweep was interrupted, or another process trained it meanwhile."""
    run = make_run("A1")
    write_stop(run, Stop(400, State.PRUNED))
    write_json(run.progress_file, {"step": 400, "max_steps": 4000})
    launcher, source = Elsewhere(), Asked(run)
    run_all([], launcher, source=source, at_once=1)
    assert (launcher.launched, source.told) == ([], [("A1", State.PRUNED)])


def test_a_run_that_another_process_has_paused_is_not_started_again(make_run: Make) -> None:
    job = Job(make_run("A1"))
    write_stop(job.run_dir, Stop(400, State.PAUSED))
    write_json(job.run_dir.progress_file, {"step": 400, "max_steps": 4000})
    job.refresh_state()
    assert job.state is State.PAUSED


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
    words = [
        *("train", "-m", "decoding.beam=1,2,3", "trainer.micro_batches=1,2", "study=single,other"),
        *(*TINY, *TEXT, write_pairs(tmp_path), "budget=smoke", "decoding.max_len_offset=2"),
        *("hydra.launcher.workers=2", "cache_dir=cache"),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [warm.python(), "-m", "etude", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "jobs: 12, runs: 6, trainings: 1" in done.stderr
    runs = [RunDir(file.parent) for file in sorted(tmp_path.glob("runs/*/base/seed1-*/result.json"))]
    assert len(runs) == 6
    assert len({run.training for run in runs}) == 1
    for run in runs:
        with run.metrics_file.open(newline="") as file:
            steps = [int(row["step"]) for row in csv.DictReader(file) if row["loss"]]
        assert steps == sorted(set(steps)), "no step was trained twice"
    assert sum("is trained already" not in run.log_file.read_text() for run in runs) == 1
