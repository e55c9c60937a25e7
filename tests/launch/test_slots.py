import json
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from etude.errors import UserError
from etude.launch.job import Job
from etude.launch.resources import Slots
from etude.launch.slots import run_side_by_side
from etude.launch.sweep import SweepFailed, jobs_of
from etude.store.lock import Busy
from etude.store.run_dir import RunDir
from etude.store.run_state import State, StoppedBySearch

Make = Callable[..., RunDir]
Programs = Callable[[dict[str, str]], Callable[[RunDir], Sequence[str]]]


def by_layers(configs: Sequence[dict[str, Any]]) -> Sequence[float]:
    """A cost for fabricated runs."""
    return [config["model"]["n_layers"] for config in configs]


def test_every_failed_run_is_listed_at_the_end(make_run: Make, programs: Programs) -> None:
    command = programs({"A1": "print('one')", "A2": "print('two')"})
    with pytest.raises(SweepFailed, match=r"(?s)2 of 2 runs failed.*A1.*one.*A2.*two"):
        run_side_by_side([make_run("A1"), make_run("A2")], Slots(workers=2), command=command)


def test_the_last_lines_are_those_of_this_process_not_of_an_earlier_one(make_run: Make, programs: Programs) -> None:
    run = make_run("A1")
    run.log_file.write_text("an old story\n")
    with pytest.raises(SweepFailed) as failure:
        run_side_by_side([run], Slots(), command=programs({"A1": "print('10%\\r90%')"}))
    assert "an old story" not in str(failure.value)
    assert "    90%" in str(failure.value)
    assert run.log_file.read_text().startswith("an old story\n")


def test_a_sweep_tells_what_wandb_lacks_of_the_runs_that_should_be_sent(
    make_run: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not one that is offline because it shall be, nor one that has been sent since."""
    runs = {arm: make_run(arm) for arm in ("kept", "sent", "offline")}
    for arm, run in runs.items():
        mode = "offline" if arm == "offline" else "online"
        run.config_file.write_text(json.dumps(run.config() | {"logger": {"wandb": {"mode": mode}}}) + "\n")
        run.write_result({"finished": True})
        part = run.path / "wandb" / "offline-run-1"
        part.mkdir(parents=True)
        (part / ("run-1.wandb.synced" if arm == "sent" else "run-1.wandb")).touch()
    run_side_by_side([*runs.values()], Slots())
    study = shlex.quote(str(tmp_path / "runs" / "table3"))
    assert f"W&B lacks 1 of 3 runs; this sends them: wandb sync {study}/*/*/wandb" in caplog.messages


def test_a_run_named_twice_runs_once(make_run: Make, programs: Programs, finish: str) -> None:
    run = make_run("A1")
    once = f"import sys, pathlib; pathlib.Path(sys.argv[1], 'once').open('x'); {finish}"
    run_side_by_side([run, RunDir(run.path)], Slots(workers=2), command=programs({"A1": once}))
    assert run.finished


def test_a_run_that_another_process_works_on_is_left_to_it_and_taken_up_when_that_has_gone(
    make_run: Make, programs: Programs, finish: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One is stopped there and finished here, one is finished there; the third never waits for them."""
    stopped, done, free = runs = [make_run("stopped"), make_run("done"), make_run("free")]
    locks = [FileLock(run.lock_file, thread_local=False) for run in runs[:2]]
    for lock in locks:
        lock.acquire()

    def other_process() -> None:
        while not free.finished:
            time.sleep(0.05)
        done.write_result({"by": "the other one"})
        for lock in locks:
            lock.release()

    other = threading.Thread(target=other_process)
    other.start()
    with caplog.at_level("INFO", "etude"):
        run_side_by_side(runs, Slots(workers=1), cost=by_layers, command=programs({"stopped": finish, "free": finish}))
    other.join()
    assert stopped.finished
    assert done.result()["by"] == "the other one"
    assert not done.log_file.exists(), "it was not started"
    for said in ("table3/stopped seed 1: left to another", "table3/done seed 1: finished by another"):
        assert caplog.text.count(said) == 1


def test_a_process_that_finds_its_run_taken_is_no_failure_and_no_attempt(
    make_run: Make, programs: Programs, finish: str, tmp_path: Path
) -> None:
    """Another process may take the run between our look and our start."""
    run, flag = make_run("A1"), tmp_path / "second"
    program = f"import pathlib; flag = pathlib.Path({str(flag)!r}); again = flag.exists(); flag.touch()\n"
    taken = f"if not again: sys.exit({Busy.exit_status})\n"
    run_side_by_side([run], Slots(), command=programs({"A1": f"import sys; {program}{taken}{finish}"}), retries=0)
    assert run.finished


def test_there_are_never_more_at_once_than_slots_and_no_slot_stays_empty(
    make_run: Make, programs: Programs, finish: str, tmp_path: Any
) -> None:
    """The first of five runs lasts until the last one is there, which a sweep in pairs would never start."""
    program = (
        "import pathlib, time\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        "me = here / '{0}.alive'; me.touch(); (here / '{0}.began').touch()\n"
        "end = time.monotonic() + 60\n"
        "while not (here / '{1}.began').exists():\n"
        "    time.sleep(0.02)\n"
        "    assert time.monotonic() < end, '{1} was not started'\n"
        "time.sleep(0.2); print(len([*here.glob('*.alive')])); me.unlink()\n"
    )
    runs = [make_run(f"A{i}") for i in range(5)]
    awaited = {"A0": "A4", **{f"A{i}": "A0" for i in range(1, 5)}}
    command = programs({arm: program.format(arm, other) + finish for arm, other in awaited.items()})
    run_side_by_side(runs, Slots(workers=2), cost=by_layers, command=command)
    at_once = [int(run.log_file.read_text()) for run in runs]
    assert at_once[1:4] == [2, 2, 2]
    assert max(at_once) == 2


def test_the_longest_run_starts_first(make_run: Make, programs: Programs, finish: str) -> None:
    runs = [make_run(f"L{layers}", layers=layers) for layers in (2, 6, 4)]
    program = f"import time; print(time.time()); {finish}"
    command = programs({f"L{n}": program for n in (2, 6, 4)})
    run_side_by_side(runs, Slots(workers=1), cost=by_layers, command=command)
    started = {run.path.parent.name: float(run.log_file.read_text()) for run in runs}
    assert sorted(started, key=lambda arm: started[arm]) == ["L6", "L4", "L2"]


def test_nobody_asks_what_runs_take_where_none_has_to_wait(make_run: Make, programs: Programs, finish: str) -> None:
    def cost(configs: Sequence[dict[str, Any]]) -> Sequence[float]:
        raise AssertionError("the plan takes a second or two")

    runs = [make_run("A1"), make_run("A2"), make_run("A3")]
    runs[2].write_result({"finished": True})
    run_side_by_side(runs, Slots(workers=2), cost=cost, command=programs({"A1": finish, "A2": finish}))
    assert all(run.finished for run in runs)


def test_a_run_gets_its_threads_no_input_and_a_session_of_its_own(
    make_run: Make, programs: Programs, finish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(variable, raising=False)
    program = (
        "import os, sys; print(os.environ['OMP_NUM_THREADS'], os.environ['GOMP_SPINCOUNT'], repr(sys.stdin.read()), "
        "os.getsid(0) == os.getpid());"
    )
    run = make_run("A1")
    run_side_by_side([run], Slots(threads=3), command=programs({"A1": program + finish}))
    assert run.log_file.read_text() == "3 40000 '' True\n"


SEES = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], os.environ['OMP_NUM_THREADS']);"


def test_every_run_sees_the_gpus_that_are_its_own(
    make_run: Make, programs: Programs, finish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-5,6")
    runs = [make_run("A1"), make_run("A2"), make_run("cpu", accelerator="cpu"), make_run("ddp", devices=2)]
    wait = "import time; time.sleep(0.5);"
    command = programs(dict.fromkeys(("A1", "A2", "cpu", "ddp"), SEES + wait + finish))
    slots = Slots(gpus=["4", "GPU-5", "6"], runs_per_gpu=2, cores=12)
    run_side_by_side(runs, slots, cost=by_layers, command=command)
    *seen, both = [run.log_file.read_text().rstrip("\n") for run in runs]
    assert seen == ["4 2", "GPU-5 2", " 1"]
    assert both in ("4,6 4", "GPU-5,6 4", "4,GPU-5 4")


@pytest.mark.parametrize(("visible", "order"), [(None, "PCI_BUS_ID"), ("0,1", None)])
def test_the_numbers_of_gpus_are_those_of_nvidia_smi_unless_they_were_given(
    visible: str | None,
    order: str | None,
    make_run: Make,
    programs: Programs,
    finish: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CUDA counts from the fastest on; whoever sets CUDA_VISIBLE_DEVICES has counted as CUDA does."""
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    run = make_run("A1")
    program = "import os; print(os.environ.get('CUDA_DEVICE_ORDER'));" + finish
    run_side_by_side([run], Slots(gpus=["1"]), command=programs({"A1": program}))
    assert run.log_file.read_text() == f"{order}\n"


def test_a_run_on_several_workers_waits_until_they_are_free(make_run: Make, programs: Programs, finish: str) -> None:
    runs = [make_run("small1"), make_run("small2"), make_run("ddp", devices=2), make_run("small3")]
    program = f"import time; print(time.time()); time.sleep(0.3); print(time.time()); {finish}"
    command = programs(dict.fromkeys(("small1", "small2", "small3", "ddp"), program))
    run_side_by_side(runs, Slots(workers=2), cost=by_layers, command=command)
    began, ended = zip(*(map(float, run.log_file.read_text().split()) for run in runs), strict=True)
    assert max(ended[:2]) < began[2] < ended[2] < began[3]


class Further:
    """A source of one run."""

    def __init__(self, run: RunDir) -> None:
        self.left = [(run, "trial 0")]

    def more(self, room: int) -> list[tuple[RunDir, str]]:
        given, self.left = self.left, []
        return given

    def watch(self) -> None:
        pass

    def figures(self) -> dict[RunDir, dict[str, str]]:
        return {}

    def ended(self, run: RunDir, state: State, reason: str) -> None:
        assert state is State.FAILED


def test_a_run_of_a_search_is_tried_again_as_often_as_any(make_run: Make, programs: Programs) -> None:
    run = make_run("A1")
    command = programs(
        {"A1": "import pathlib, sys; pathlib.Path(sys.argv[1], 'tried').open('a').write('x'); sys.exit(1)"}
    )
    with pytest.raises(SweepFailed, match="attempt 3"):
        run_side_by_side([], Slots(workers=1), retries=2, command=command, source=Further(run))
    assert (run.path / "tried").read_text() == "xxx"


def test_a_run_of_a_search_that_asks_for_too_much_ends_it_with_a_sentence(make_run: Make) -> None:
    with pytest.raises(UserError, match=r"A1 seed 1 trial 0 asks for trainer\.devices=2, and there is 1 worker"):
        run_side_by_side([], Slots(workers=1), source=Further(make_run("A1", devices=2)))


def test_a_run_that_the_search_wants_further_meanwhile_has_paused_and_not_failed(make_run: Make) -> None:
    job = Job(make_run("A1"))
    job.start(lambda run: [sys.executable, "-c", f"raise SystemExit({StoppedBySearch.exit_status})"], 1)
    while job.state is State.RUNNING:
        job.poll()
    assert job.state is State.PAUSED


def test_a_run_that_asks_for_too_much_is_refused_before_anything_starts(make_run: Make) -> None:
    def command(run_dir: RunDir) -> list[str]:
        raise AssertionError("nothing must be started")

    runs = [make_run("A1"), make_run("A2", devices=3)]
    with pytest.raises(UserError, match=r"table3/A2 seed 1 asks for trainer\.devices=3, and there are 2 GPUs"):
        run_side_by_side(runs, Slots(gpus=["0", "1"]), command=command)


SWEEP = """
import signal, sys
from pathlib import Path
from etude.store.run_dir import RunDir
from etude.launch.resources import Slots
from etude.launch.slots import run_side_by_side

child, grace, *paths = sys.argv[1:]
for heeded in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # behind nohup or & some are ignored
    signal.signal(heeded, signal.default_int_handler)
command = lambda run_dir: [sys.executable, "-c", child, str(run_dir.path), run_dir.path.parent.name]
runs = [RunDir(Path(path)) for path in paths]
in_order = lambda configs: [0.0] * len(configs)
run_side_by_side(runs, Slots(workers=2), grace=float(grace), cost=in_order, command=command)
"""


@pytest.fixture
def sweep(family: str, soon: Callable[[Callable[[], bool]], bool]) -> Callable[..., tuple[Any, list[int]]]:
    """Starts a sweep in a process of its own: it, and the processes of its first two runs."""

    def start(runs: Sequence[RunDir], grace: float) -> tuple[Any, list[int]]:
        words = [family, str(grace), *(str(run.path) for run in runs)]
        process = subprocess.Popen([sys.executable, "-c", SWEEP, *words], stderr=subprocess.PIPE, text=True)
        files = [run.path / "pids" for run in runs[:2]]
        assert soon(lambda: all(file.exists() for file in files))
        return process, [int(pid) for file in files for pid in file.read_text().split()]

    return start


@pytest.mark.slow
def test_an_interrupted_sweep_leaves_nothing_running(
    make_run: Make, sweep: Callable[..., Any], alive: Callable[[int], bool]
) -> None:
    runs = [make_run(arm) for arm in ("polite", "stubborn", "never_started")]
    process, pids = sweep(runs, grace=0.5)
    assert all(alive(pid) for pid in pids)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert "stopping: 2 runs have 0.5 s to write a checkpoint; Ctrl-C again ends everything now" in errors
    assert "KeyboardInterrupt: 0 of 3 runs are finished" in errors
    assert not any(alive(pid) for pid in pids)
    assert not (runs[2].path / "pids").exists()


def test_ctrl_c_twice_ends_everything_now(
    make_run: Make, sweep: Callable[..., Any], alive: Callable[[int], bool]
) -> None:
    runs = [make_run(arm) for arm in ("stubborn", "polite")]
    process, pids = sweep(runs, grace=3600)
    process.send_signal(signal.SIGINT)
    assert "stopping: 2 runs have 3600 s" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert not any(alive(pid) for pid in pids)


def test_a_terminal_that_hangs_up_twice_does_not_cut_the_grace_short(make_run: Make, sweep: Callable[..., Any]) -> None:
    runs = [make_run("stubborn"), make_run("polite")]
    process, _ = sweep(runs, grace=3600)
    process.send_signal(signal.SIGHUP)
    assert "stopping" in process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def test_the_callers_signal_handlers_are_given_back(make_run: Make, programs: Programs, finish: str) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    before = [signal.getsignal(number) for number in numbers]
    run_side_by_side([make_run("A1")], Slots(), command=programs({"A1": finish}))
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_runs_that_differ_in_what_was_typed_have_names_that_tell_them_apart(make_run: Make) -> None:
    def run(arm: str, seed: int, typed: str) -> RunDir:
        made = make_run(arm, seed)
        made.overrides_file.write_text("\n".join(typed.split()))
        return RunDir(made.path.rename(made.path.with_name(f"seed1-{seed:08}")))

    shared = "scale=small trainer=cpu seed=1"
    runs = [
        run("base", 1, f"model/position=rope {shared}"),
        run("base", 2, f"model/position=alibi model.heads=2 {shared}"),
        run("A1", 3, f"experiment=table3/A1 {shared}"),
    ]
    assert [job.name for job in jobs_of([*runs, runs[0]])] == [
        "table3/base seed 1 model/position=rope",
        "table3/base seed 1 model/position=alibi model.heads=2",
        "table3/A1 seed 1",
    ]


def test_a_run_that_diverged_is_not_tried_again_and_fails_no_sweep(
    make_run: Make, programs: Programs, finish: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    diverged = finish.replace("'steps': 100", "'steps': 40, 'diverged': 'the loss is nan at step 40'") + "; sys.exit(3)"
    runs = [make_run("A1"), make_run("base")]
    for _ in range(2):
        command = programs({"A1": diverged, "base": finish})
        run_side_by_side(runs, Slots(workers=1), retries=2, cost=by_layers, command=command)
        diverged = "raise SystemExit('it is run again')"
    last = "1 of 2 runs diverged, which no retry would change: table3/A1 seed 1 (the loss is nan at step 40)"
    assert caplog.messages.count(last) == 2
    assert "table3/A1 seed 1 diverged: the loss is nan at step 40 (1 of 2)" in caplog.messages
    assert caplog.messages[-2:] == ["runs: 2, finished before: 2", last]
