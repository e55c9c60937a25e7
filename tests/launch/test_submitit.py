import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from tests import warm

from etude.config.resolvers import register
from etude.errors import UserError
from etude.launch.sweep import SweepFailed
from etude.paths import shipped
from etude.store.run_dir import RunDir
from etude.store.run_state import State

submitit = pytest.importorskip("submitit", reason="needs submitit: pip install 'etude[slurm]'")

from submitit.core import utils  # noqa: E402

import etude.launch.remote  # noqa: E402
import etude.launch.slurm  # noqa: E402
import etude.launch.slurm_queue  # noqa: E402
from etude.launch.interrupts import Interrupts  # noqa: E402
from etude.launch.job import Job  # noqa: E402
from etude.launch.remote import Outcome, settle  # noqa: E402
from etude.launch.slurm import Preemptible, SubmititLauncher, run_as_jobs  # noqa: E402
from etude.launch.slurm_queue import Queue  # noqa: E402
from etude.launch.sweep import run_all  # noqa: E402

Make = Callable[..., RunDir]
Programs = Callable[[dict[str, str]], Callable[[RunDir], Sequence[str]]]
Where = Callable[..., dict[str, Any]]
Soon = Callable[[Callable[[], bool]], bool]

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")

STANDIN = Path(__file__).with_name("slurm_standin.py")

# Works until it is asked to stop, and then saves; where it has saved before, it finishes.
PATIENT = """
import pathlib, signal, sys, time
run = pathlib.Path(sys.argv[1])
checkpoint = run / "checkpoint"

def save(number, frame):
    checkpoint.touch()
    sys.exit(130)

if not checkpoint.exists():
    signal.signal(signal.SIGTERM, save)
    (run / "started").touch()
    time.sleep(60)
"""
# The same, but it does not listen.
STUBBORN = """
import pathlib, signal, sys, time
run = pathlib.Path(sys.argv[1])
if not (run / "started").exists():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (run / "started").touch()
    time.sleep(60)
"""


@cache
def launcher(name: str) -> dict[str, Any]:
    """What `hydra/launcher=NAME` hands to the launcher."""
    register()
    with initialize_config_dir(str(shipped("conf")), version_base="1.3"):
        config = compose("train", [f"hydra/launcher={name}"], return_hydra_config=True)
    options: dict[str, Any] = OmegaConf.to_container(config.hydra.launcher, resolve=True)  # type: ignore[assignment]
    return options


@pytest.fixture
def where(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """How `run_as_jobs` is to submit, as the YAML says but for what is given."""

    def arguments(cluster: str = "local", **options: Any) -> dict[str, Any]:
        ours = {"_target_", "_convert_", "wait_for_completion", "fail_fast"}
        said = {key: value for key, value in launcher(f"submitit_{cluster}").items() if key not in ours}
        return said | {"submitit_folder": str(tmp_path / "jobs" / "%j")} | options

    return arguments


def submit(jobs: Sequence[Job], **how: Any) -> SubmititLauncher:
    launcher = SubmititLauncher(**how)
    assert launcher.submit(jobs) == jobs
    return launcher


def wait_for(launcher: SubmititLauncher) -> list[Job]:
    """The runs, each when its job has ended."""
    ended: list[Job] = []
    while launcher.tasks:
        ended += launcher.wait([], Interrupts())
    return ended


def preempt(job: Any) -> None:
    """What SLURM does: the task gets the signal, the script around it does not."""
    pid = job._process.pid
    (task,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(task), signal.SIGUSR2)


@pytest.mark.slow
def test_each_run_is_a_job_and_a_failure_takes_no_other_along(
    make_run: Make, programs: Programs, finish: str, where: Where, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    runs = [make_run(arm) for arm in ("A1", "fails", "done")]
    runs[2].write_result({"test": {}})
    command = programs({"A1": finish, "fails": "raise ValueError('the loss is not a number')"})
    with pytest.raises(SweepFailed, match=r"(?s)1 of 3 runs failed.*fails seed 1 failed: exit status 1.*not a number"):
        run_as_jobs([*runs, runs[0]], wait_for_completion=True, command=command, **where())
    assert runs[0].finished
    assert any("table3/A1 seed 1: finished in" in message for message in caplog.messages)
    assert any(message.startswith("submitted 2 jobs; kill ") for message in caplog.messages)


@pytest.mark.slow
def test_fail_fast_cancels_the_other_jobs_which_save_first(
    make_run: Make, programs: Programs, where: Where, soon: Soon
) -> None:
    runs = [make_run("patient"), make_run("fails")]
    wait = "import pathlib, sys, time\nwhile not list(pathlib.Path(sys.argv[1]).parents[1].glob('patient/*/started')):"
    command = programs({"patient": PATIENT, "fails": f"{wait} time.sleep(0.05)\nsys.exit('no number')"})
    with pytest.raises(SweepFailed, match=r"(?s)1 of 2 runs failed.*no number.*1 were stopped or not begun"):
        run_as_jobs(runs, wait_for_completion=True, fail_fast=True, command=command, **where())
    assert soon((runs[0].path / "checkpoint").exists)


def test_where_all_is_finished_no_cluster_is_needed(make_run: Make, where: Where) -> None:
    run = make_run("A1")
    run.write_result({"test": {}})
    run_as_jobs([run], wait_for_completion=True, **where("slurm"))


@needs_proc
@pytest.mark.slow
def test_a_preempted_run_that_does_not_listen_goes_on_all_the_same_when_its_job_comes_back(
    make_run: Make, programs: Programs, finish: str, where: Where, soon: Soon
) -> None:
    run = make_run("A1")
    command = programs({"A1": STUBBORN + finish})
    [job] = submit([Job(run)], command=command, **where(signal_delay_s=2)).tasks
    assert soon((run.path / "started").exists)
    preempt(job)
    assert job.result().reason == ""
    assert run.finished
    assert "Requeued job" in job.stderr() + job.stdout()


def test_a_job_that_is_taken_away_for_good_lets_its_run_save(
    make_run: Make, programs: Programs, finish: str, soon: Soon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUBMITIT_EXECUTOR", raising=False)  # whatever runs this test
    run = make_run("A1")
    before = signal.getsignal(signal.SIGTERM)
    job = Preemptible(run, 1, grace=1.0, command=programs({"A1": PATIENT + finish}))

    def take_away() -> None:
        if soon((run.path / "started").exists):
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=take_away)
    thread.start()
    try:
        assert job().reason == "exit status 130, without a result"
    finally:
        thread.join()
        signal.signal(signal.SIGTERM, before)
    assert (run.path / "checkpoint").exists()
    assert not run.finished


@needs_proc
@pytest.mark.slow
def test_a_run_that_is_out_of_time_too_often_has_failed(
    make_run: Make, programs: Programs, finish: str, where: Where, soon: Soon
) -> None:
    run = make_run("A1")
    jobs = [Job(run)]
    how = where(signal_delay_s=2, timeout_min=1, max_num_timeout=0)
    launcher = submit(jobs, command=programs({"A1": PATIENT + finish}), **how)
    assert soon((run.path / "started").exists)
    for job in launcher.tasks:
        preempt(job)
    with pytest.raises(SweepFailed, match=r"job \d+ ended without a result \(FINISHED\), see \S+log\.err"):
        run_all(jobs, launcher, running=jobs)
    assert (run.path / "checkpoint").exists()


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a stand-in for SLURM."""
    folder = tmp_path / "slurm"
    subprocess.run([sys.executable, STANDIN, folder, "install"], check=True)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return folder


def scripts(slurm: Path) -> list[str]:
    """What sbatch was handed."""
    return [file.read_text() for file in sorted(slurm.glob("*.sh"))]


@pytest.mark.slow
def test_a_preempted_run_goes_on_when_slurm_brings_its_job_back_and_its_neighbour_notices_nothing(
    make_run: Make, programs: Programs, finish: str, where: Where, slurm: Path, soon: Soon
) -> None:
    (slurm / "open").touch()
    runs = [make_run("preempted"), make_run("neighbour")]
    command = programs({"preempted": PATIENT + finish, "neighbour": "print('once');" + finish})
    submitted = submit([Job(run) for run in runs], command=command, **where("slurm"))
    assert [job.job_id for job in submitted.tasks] == ["4700_0", "4700_1"]
    assert soon((runs[0].path / "started").exists)
    os.kill(int((slurm / "4700_0.pid").read_text()), signal.SIGUSR2)
    assert {job.reason for job in wait_for(submitted)} == {""}
    assert [run.finished for run in runs] == [True, True]
    assert (runs[0].path / "checkpoint").exists()
    assert runs[1].log_file.read_text() == "once\n"


@pytest.mark.slow
def test_a_job_that_slurm_takes_away_waits_for_slurm_to_end_or_requeue_it(
    make_run: Make,
    programs: Programs,
    finish: str,
    where: Where,
    slurm: Path,
    soon: Soon,
    alive: Callable[[int], bool],
) -> None:
    (slurm / "open").touch()
    run = make_run("A1")
    submit([Job(run)], command=programs({"A1": PATIENT + finish}), **where("slurm", signal_delay_s=2))
    assert soon((run.path / "started").exists)
    [file] = slurm.glob("*.pid")
    job = int(file.read_text())
    os.kill(job, signal.SIGTERM)
    assert soon((run.path / "checkpoint").exists)
    time.sleep(1.5)  # longer than the grace, which is a second
    assert alive(job)
    os.kill(job, signal.SIGKILL)


def test_a_run_that_another_process_trains_is_submitted_when_that_has_gone(
    make_run: Make, where: Where, slurm: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    runs = [make_run("A1"), make_run("A2")]
    other = FileLock(runs[0].lock_file, thread_local=False)
    other.acquire()

    def finished(launcher: SubmititLauncher, jobs: Sequence[Job], signals: Interrupts) -> list[Job]:
        ended = [*launcher.tasks.values()]
        launcher.tasks.clear()
        for job in ended:
            job.run_dir.write_result({"test": {}})
            settle(job, Outcome(0.0, 1.0, ""))
        other.release()
        return ended

    monkeypatch.setattr(SubmititLauncher, "wait", finished)
    run_as_jobs(runs, wait_for_completion=True, **where("slurm"))
    assert [run.finished for run in runs] == [True, True]
    assert [m.partition(";")[0] for m in caplog.messages if m.startswith("submitted")] == ["submitted 1 jobs"] * 2
    assert caplog.text.count("table3/A1 seed 1: left to another process") == 1


def test_slurm_is_asked_for_what_the_config_says(
    make_run: Make, where: Where, slurm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    runs = [make_run("A1"), make_run("big", devices=4), make_run("A2"), make_run("A3", accelerator="cpu")]
    options = {"partition": "gpu", "setup": ["module load cuda"], "additional_parameters": {"reservation": "friday"}}
    run_as_jobs(runs, wait_for_completion=False, **where("slurm", **options, qos="high"))
    array, big, cpu = scripts(slurm)
    said = set(array.splitlines())
    assert said >= {
        "#SBATCH --array=0-1%2",
        "#SBATCH --gpus-per-node=1",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --time=1440",
        "#SBATCH --signal=USR2@120",
        "#SBATCH --partition=gpu",
        "#SBATCH --qos=high",
        "#SBATCH --reservation=friday",
        "module load cuda",
    }
    assert "--cpus-per-task=4" in next(line for line in said if line.startswith("srun "))
    assert "#SBATCH --gpus-per-node=4" in big.splitlines()
    assert "--array" not in big
    assert "gpu" not in cpu.replace("--partition=gpu", "")
    assert caplog.messages[-1] == "submitted 4 jobs; scancel 4700 4701 4702 ends them"


def test_gpus_that_are_asked_for_are_those_of_every_run(make_run: Make, where: Where, slurm: Path) -> None:
    run_as_jobs([make_run("A1")], wait_for_completion=False, **where("slurm", gpus_per_node=2))
    assert "#SBATCH --gpus-per-node=2" in scripts(slurm)[0].splitlines()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"partition": "none"}, "invalid partition specified: none"),
        ({"timeout_min": "long"}, 'Parameter "timeout_min" expected type .*int.*"long"'),
        ({"partitoin": "gpu"}, "Unknown argument 'partitoin'"),
    ],
)
def test_what_is_refused_is_told(options: dict[str, Any], told: str, make_run: Make, where: Where, slurm: Path) -> None:
    with pytest.raises(UserError, match=rf"hydra\.launcher: .*{told}.* \(hydra/launcher=slots needs no cluster\)"):
        run_as_jobs([make_run("A1")], wait_for_completion=True, **where("slurm", **options))
    assert scripts(slurm) == []


def test_what_was_submitted_before_a_refusal_is_told_and_not_submitted_again(
    make_run: Make, where: Where, slurm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Runs on two devices are an array of their own, which this cluster does not take."""
    small, big = make_run("A1"), make_run("A2", devices=2)
    (slurm / "refused").write_text("--gpus-per-node=2")
    with pytest.raises(UserError, match=r"; 1 jobs were submitted before, scancel 4700 ends them"):
        run_as_jobs([small, big], wait_for_completion=False, **where("slurm"))
    (slurm / "refused").unlink()
    caplog.set_level("INFO", logger="etude")
    run_as_jobs([small, big], wait_for_completion=False, **where("slurm"))
    assert caplog.messages[0] == "in the queue already: 1 jobs; scancel 4700 ends them"
    assert len(scripts(slurm)) == 2


def test_without_slurm_it_says_so(make_run: Make, where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="are you indeed on a slurm cluster"):
        run_as_jobs([make_run("A1")], wait_for_completion=True, **where("slurm"))


def test_on_ctrl_c_the_jobs_go_on_and_one_is_told_how_to_end_them(
    make_run: Make, where: Where, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(launcher: SubmititLauncher, jobs: Sequence[Job], signals: Interrupts) -> list[Job]:
        assert len(launcher.tasks) == len(jobs) == 2
        signals.caught.append(signal.SIGINT)
        return []

    monkeypatch.setattr(SubmititLauncher, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"the jobs go on: etude status shows them, scancel 4700 ends them"):
        run_as_jobs([make_run("A1"), make_run("A2")], wait_for_completion=True, **where("slurm"))


def test_on_ctrl_c_while_only_another_process_works_there_is_no_job_to_end(
    make_run: Make, where: Where, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(launcher: SubmititLauncher, jobs: Sequence[Job], signals: Interrupts) -> list[Job]:
        launcher.tasks.clear()
        for job in jobs:
            job.state = State.ELSEWHERE
        signals.caught.append(signal.SIGINT)
        return [*jobs]

    monkeypatch.setattr(SubmititLauncher, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"0 of 1 runs are finished; the same command goes on"):
        run_as_jobs([make_run("A1")], wait_for_completion=True, **where("slurm"))


def test_a_run_whose_job_is_in_the_queue_is_not_submitted_again(
    make_run: Make, where: Where, slurm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    runs = [make_run("A1"), make_run("A2"), make_run("A3")]
    run_as_jobs(runs[:2], wait_for_completion=False, **where("slurm"))
    (slurm / "4700_1.state").write_text("CANCELLED by 1000")
    run_as_jobs(runs, wait_for_completion=False, **where("slurm"))
    assert caplog.messages[-2:] == [
        "in the queue already: 1 jobs; scancel 4700_0 ends them",  # the rest of the array may be another sweep's
        "submitted 2 jobs; scancel 4701 ends them",
    ]


def test_a_run_whose_job_has_its_result_is_submitted_again_though_the_job_is_in_the_queue_yet(
    make_run: Make, where: Where, slurm: Path
) -> None:
    """A search lets a run go on as soon as that has paused; the script around it ends a moment later."""
    run = make_run("A1")
    first = submit([Job(run)], **where("slurm"))
    [task] = first.tasks
    utils.cloudpickle_dump(("success", Outcome(0.0, 1.0, "", State.PAUSED)), task.paths.result_pickle)
    submit([Job(run)], **where("slurm"))
    assert len(scripts(slurm)) == 2


def test_runs_in_the_queue_that_share_a_training_are_not_left_out(
    make_run: Make, where: Where, slurm: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = [make_run("A1"), make_run("A2"), make_run("A3")]
    for run in runs:
        run.training_file.write_text("shared")
    submit([Job(run) for run in runs[:2]], command=list, **where("slurm"))
    run_as_jobs(runs[:2], wait_for_completion=False, **where("slurm"))
    assert "left out" not in caplog.text
    run_as_jobs(runs, wait_for_completion=False, **where("slurm"))
    assert "left out: 1 runs that need what others train" in caplog.text


def test_a_queue_that_cannot_be_asked_is_a_sentence(make_run: Make, where: Where, slurm: Path) -> None:
    run = make_run("A1")
    run_as_jobs([run], wait_for_completion=False, **where("slurm"))
    (slurm / "busy").touch()
    with pytest.raises(UserError, match=r"squeue: slurm_load_jobs error: Unable to contact .*; try again later"):
        run_as_jobs([run], wait_for_completion=True, **where("slurm"))


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """SLURM's queue is looked at without end, and what has left it has left it."""
    for module, name, seconds in (
        (etude.launch.slurm_queue, "_POLL_INTERVAL", 0.0),
        (etude.launch.slurm_queue, "_PATIENCE", 1.0),
        (etude.launch.slurm, "_POLL_INTERVAL", 0.05),
    ):
        monkeypatch.setattr(module, name, seconds)


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "CANCELLED by 1000"])
def test_a_job_that_has_left_the_queue_without_a_result_has_failed(
    state: str, make_run: Make, where: Where, slurm: Path, quickly: None
) -> None:
    submitted = submit([Job(make_run("A1"))], command=list, **where("slurm"))
    (slurm / "4700.state").write_text(state)
    [job] = wait_for(submitted)
    assert re.fullmatch(rf"job 4700 ended without a result \({state.split()[0]}.*\), see \S+", job.reason)


def test_a_job_has_left_when_slurm_has_answered_without_it_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be submitted long after the launcher began, and seconds before squeue is asked again.

    While squeue does not answer, no job has left.
    """
    now, there, answers = 1000.0, {"1"}, True

    def queued_jobs() -> set[str]:
        if not answers:
            raise UserError("squeue does not answer")
        return there

    monkeypatch.setattr(etude.launch.slurm_queue.time, "monotonic", lambda: now)
    monkeypatch.setattr(etude.launch.slurm_queue, "queued_jobs", queued_jobs)
    queue = Queue()
    now = 1100.0
    assert not queue.has_left("1")
    now = 1101.0
    assert not queue.has_left("2"), "it was submitted since squeue answered"
    now, there = 1125.0, {"1", "2"}
    assert not queue.has_left("2")
    now, there = 1180.0, {"1"}
    assert not queue.has_left("2")
    now = 1201.0
    assert queue.has_left("2"), "it has been gone for a minute"
    assert not queue.has_left("1")
    answers, there = False, set()
    now = 1230.0
    assert not queue.has_left("1")
    now = 1400.0
    assert not queue.has_left("1")
    now, answers = 1430.0, True
    assert queue.has_left("1")


def test_a_job_trains_what_it_was_submitted_for_whatever_is_frozen_later(
    make_run: Make, programs: Programs, finish: str, where: Where, slurm: Path, soon: Soon
) -> None:
    (slurm / "open").touch()
    run = make_run("A1")
    launched = run.config_file.read_text()
    job = Job(run)
    run.config_file.write_text(launched.replace('"auto"', '"cpu"'))
    submit([job], command=programs({"A1": finish}), **where("slurm"))
    assert soon(lambda: run.finished)
    assert run.config_file.read_text() == launched


def test_a_job_that_is_submitted_from_another_is_its_own(
    make_run: Make, where: Where, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sbatch takes options from SLURM_ variables, submitit the number of an array.

    SLURM_CONF is the cluster's, SBATCH_ACCOUNT the user's.
    """
    for name in ("SLURM_MEM_PER_CPU", "SLURM_ARRAY_JOB_ID", "SLURM_CONF", "SBATCH_ACCOUNT"):
        monkeypatch.setenv(name, "7")
    submit([Job(make_run("A1"))], command=list, **where("slurm"))
    assert (slurm / "environment").read_text().split() == ["SBATCH_ACCOUNT", "SLURM_CONF"]
    assert os.environ["SLURM_ARRAY_JOB_ID"] == "7"


def test_more_runs_than_an_array_may_have_are_several_arrays(
    make_run: Make, where: Where, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etude.launch.slurm, "_ARRAY", 2)
    submit([Job(make_run("A1", seed)) for seed in range(5)], command=list, **where("slurm"))
    assert [re.findall("--array=(.*)", script) for script in scripts(slurm)] == [["0-1%2"], ["0-1%2"], []]


def test_where_no_cores_are_asked_for_slurm_is_asked_for_none(make_run: Make, where: Where, slurm: Path) -> None:
    submit([Job(make_run("A1"))], command=list, **where("slurm", cpus_per_task=None))
    assert "cpus-per-task" not in scripts(slurm)[0]


@pytest.mark.slow
def test_whoever_types_the_command_again_sees_the_jobs_of_the_first_through(
    make_run: Make,
    programs: Programs,
    finish: str,
    where: Where,
    slurm: Path,
    soon: Soon,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    (slurm / "open").touch()
    runs = [make_run("A1")]
    wait = "import time\nwhile not pathlib.Path(sys.argv[1], 'go').exists(): time.sleep(0.05)\n"
    command = programs({"A1": "import pathlib, sys\n" + wait + finish})
    run_as_jobs(runs, wait_for_completion=False, command=command, **where("slurm"))

    def go_when_joined() -> None:
        soon(lambda: any("in the queue already: 1 jobs" in message for message in caplog.messages))
        (runs[0].path / "go").touch()

    thread = threading.Thread(target=go_when_joined)
    thread.start()
    run_as_jobs(runs, wait_for_completion=True, command=command, **where("slurm"))
    thread.join()
    assert len(scripts(slurm)) == 1
    assert any("table3/A1 seed 1: finished in" in message for message in caplog.messages)


@pytest.mark.slow
def test_a_multirun_trains_in_a_job_and_typed_again_finds_it_finished(tmp_path: Path) -> None:
    small = ["data.train_pairs=400", "data.valid_pairs=20", "data.test_pairs=20", "data.vocab_size=300"]
    words = [
        "train",
        "-m",
        "hydra/launcher=submitit_local",
        "hydra.launcher.cpus_per_task=1",  # threads without a core of their own wait for each other
        "budget=smoke",
        "budget.max_steps=4",
        "logger=none",
        *small,
    ]
    environment = os.environ | {"ETUDE_CACHE": str(tmp_path / "cache")}
    for told in ("finished before: 0", "finished before: 1"):
        done = subprocess.run(
            [warm.python(), "-m", "etude", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert (done.returncode, told in done.stderr) == (0, True), done.stderr
    assert len([*tmp_path.glob("runs/single/base/seed1-*/result.json")]) == 1
    assert len([*tmp_path.glob("runs/.multirun/submitit/[0-9]*")]) == 1


@pytest.mark.parametrize("key", ["wait_for_completion", "fail_fast"])
def test_what_is_neither_true_nor_false_is_refused(make_run: Make, where: Where, key: str) -> None:
    with pytest.raises(UserError, match=rf"hydra\.launcher\.{key}=fasle: it must be true or false"):
        run_as_jobs([make_run("A1")], **{"wait_for_completion": True, **where(), key: "fasle"})
