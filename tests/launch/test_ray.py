import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.errors import UserError
from etude.launch.sweep import SweepFailed
from etude.search.together import Together
from etude.store.lock import Busy
from etude.store.run_dir import RunDir

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'etude[ray]'")

from etude.launch.ray import run_as_tasks  # noqa: E402

Make = Callable[..., RunDir]
Programs = Callable[[dict[str, str]], Callable[[RunDir], Sequence[str]]]
How = dict[str, Any]
Soon = Callable[[Callable[[], bool]], bool]

pytestmark = pytest.mark.slow  # Ray takes some seconds to start
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.fixture(scope="module")
def how() -> Iterator[dict[str, Any]]:
    """How `run_as_tasks` is to run: on a cluster of one machine with two cores, and a GPU that nobody looks for."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    ray_program = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    here = ["--node-ip-address=127.0.0.1", f"--port={address.rpartition(':')[2]}", "--num-cpus=2", "--num-gpus=1"]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")  # the home of a test holds no token
        head = subprocess.Popen([*ray_program, *here, "--include-dashboard=false"], stdout=subprocess.PIPE, text=True)
        assert head.stdout is not None
        assert any("Ray runtime started" in line for line in head.stdout)
        init = {"address": address, "log_to_driver": False, "include_dashboard": False}
        yield {"init": init, "num_cpus": 1, "num_gpus": None, "max_retries": 3}
        head.terminate()
        head.wait(30)


# Says what it was given, once both runs that are to share a GPU are there.
MEET = """
import os, pathlib, sys, time
runs = pathlib.Path(sys.argv[1]).parent.parent
(runs / sys.argv[1] / "here").touch()
deadline = time.monotonic() + 60
while len(there := list(runs.glob("half*/*/here"))) < 2 and time.monotonic() < deadline:
    time.sleep(0.05)
print(len(there), os.environ["OMP_NUM_THREADS"], os.environ.get("CUDA_VISIBLE_DEVICES", "all"))
"""
# Works until it is asked to stop, and then takes a while to save; where it has saved before, it finishes.
SLOW = """
import os, pathlib, signal, sys, time
from filelock import FileLock
run = pathlib.Path(sys.argv[1])

def save(number, frame):
    time.sleep(1)
    (run / "checkpoint").touch()
    sys.exit(130)

with FileLock(run / ".lock", timeout=0):
    if not (run / "checkpoint").exists():
        signal.signal(signal.SIGTERM, save)
        keeper = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
        (run / "worker").write_text(keeper.rpartition(")")[2].split()[1])
        time.sleep(60)
"""


def test_each_run_is_a_task_with_what_it_asks_for_and_a_failure_takes_no_other_along(
    make_run: Make, programs: Programs, finish: str, how: How
) -> None:
    runs = [make_run(arm) for arm in ("half1", "half2", "fails", "done")]
    runs.append(make_run("cpu", accelerator="cpu", devices=2))
    runs[3].write_result({"test": {}})
    meet = dict.fromkeys(("half1", "half2", "cpu"), MEET + finish)
    command = programs(meet | {"fails": "raise ValueError('the loss is not a number')"})
    with pytest.raises(SweepFailed, match=r"(?s)1 of 5 runs failed.*fails seed 1 failed: exit status 1.*not a number"):
        run_as_tasks([*runs, runs[0]], **how | {"num_gpus": 0.5, "num_cpus": 1}, command=command)
    assert [run.log_file.read_text() for run in runs[:2]] == ["2 1 0\n"] * 2
    assert runs[4].log_file.read_text() == "2 1 \n"
    assert not ray.is_initialized()


def test_a_run_that_another_process_trained_is_handed_over_again(
    make_run: Make, programs: Programs, finish: str, how: How
) -> None:
    """The first attempt finds it taken."""
    run = make_run("A1")
    taken = f"""
import pathlib, sys
seen = pathlib.Path(sys.argv[1], "seen")
if not seen.exists():
    seen.touch()
    sys.exit({Busy.exit_status})
"""
    run_as_tasks([run], **how, command=programs({"A1": taken + finish}))
    assert run.finished


def when_it_works(run: RunDir, act: Callable[[int], None], soon: Soon) -> threading.Thread:
    """Do `act` with the id of the worker's process, once the run is at work."""
    worker = run.path / "worker"

    def watch() -> None:
        if soon(lambda: worker.exists() and worker.read_text() != ""):
            act(int(worker.read_text()))

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@needs_proc
def test_a_run_that_loses_its_worker_saves_and_goes_on_with_another(
    make_run: Make, programs: Programs, finish: str, how: How, soon: Soon
) -> None:
    run = make_run("A1")
    killer = when_it_works(run, lambda pid: os.kill(pid, signal.SIGKILL), soon)
    run_as_tasks([run], **how, command=programs({"A1": SLOW + finish}))
    killer.join()
    assert run.finished


@needs_proc
def test_on_ctrl_c_every_run_saves_and_stops(
    make_run: Make, programs: Programs, finish: str, how: How, soon: Soon
) -> None:
    run = make_run("A1")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    impatient = when_it_works(run, lambda _: os.kill(os.getpid(), signal.SIGINT), soon)
    try:
        with pytest.raises(KeyboardInterrupt, match=r"0 of 1 runs are finished; the same command goes on"):
            run_as_tasks([run], **how, command=programs({"A1": SLOW + finish}))
    finally:
        impatient.join()
        signal.signal(signal.SIGINT, before)
    assert (run.path / "checkpoint").exists()


class Asked(Together):
    """A search that notes how many trials it was asked for, and has none."""

    def __init__(self) -> None:
        super().__init__(())
        self.room = 0

    def more(self, room: int) -> list[tuple[RunDir, str]]:
        self.room = room
        return []


def test_a_search_is_asked_for_as_many_trials_as_the_cluster_has_room_for(how: How) -> None:
    run_as_tasks([], **how | {"num_cpus": 1, "num_gpus": 0.5}, source=(asked := Asked()))
    assert asked.room == 2


@pytest.mark.parametrize(("cpus", "of_a_run", "at_once"), [(1, None, 1), (1, 0, 2), (1, 1, 1), (0, 0, 1)])
def test_there_is_room_where_there_are_both_cores_and_gpus_for_a_trial(
    cpus: int, of_a_run: float | None, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etude.launch.ray._start", lambda init: None)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0, "GPU": 1.0})
    run_as_tasks([], init={}, num_cpus=cpus, num_gpus=of_a_run, max_retries=0, source=(asked := Asked()))
    assert asked.room == at_once


def test_what_ray_refuses_is_told(make_run: Make, how: How) -> None:
    with pytest.raises(UserError, match=r"hydra\.launcher: .*num_cpuss.* \(hydra/launcher=slots needs no Ray\)"):
        run_as_tasks([make_run("A1")], **how | {"init": how["init"] | {"num_cpuss": 1}})


@pytest.mark.parametrize(("key", "value"), [("num_cpus", "many"), ("num_gpus", -1), ("fail_fast", "fasle")])
def test_an_option_that_is_not_valid_is_told_before_ray_starts(key: str, value: object, how: How) -> None:
    with pytest.raises(UserError, match=rf"hydra\.launcher\.{key}={value}: it must be"):
        run_as_tasks([], **how | {key: value})


def test_where_all_is_finished_ray_is_not_started(make_run: Make) -> None:
    run = make_run("A1")
    run.write_result({"test": {}})
    run_as_tasks([run], init={"address": "nowhere"}, num_cpus=1, num_gpus=None, max_retries=0)
