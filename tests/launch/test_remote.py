"""A run on another machine, and what its outcome is taken for here."""

import threading
from collections.abc import Callable

import pytest
from filelock import FileLock

from etude.launch import remote
from etude.launch.job import Job, State
from etude.launch.remote import Outcome, RemoteRun, settle
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]


def test_a_result_that_a_network_file_system_shows_late_is_waited_for(make_run: Make) -> None:
    job = Job(make_run("A1"))
    threading.Timer(0.3, job.run_dir.write_result, [{"test": {}, "finished": True}]).start()
    settle(job, Outcome(0.0, 1.0, ""))
    assert job.state is State.FINISHED


def test_a_result_that_never_appears_is_a_failure_of_this_run(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_NFS_CACHE", 0.2)
    job = Job(make_run("A1"))
    settle(job, Outcome(0.0, 1.0, ""))
    assert job.state is State.FAILED
    assert job.reason == "its result, which was written on another machine, cannot be seen on this one"


def test_a_run_that_is_asked_to_stop_while_it_waits_for_the_one_before_does_not_begin(make_run: Make) -> None:
    run = make_run("A1")
    remote_run = RemoteRun(run, 1, command=never)
    before = FileLock(run.lock_file, thread_local=False)
    before.acquire()

    def stop() -> None:
        remote_run.ask_to_stop()
        before.release()

    threading.Timer(0.3, stop).start()
    assert remote_run().reason == "it was asked to stop before it had started"
    assert remote_run.stopping


def never(run: RunDir) -> list[str]:
    raise AssertionError("it was started")
