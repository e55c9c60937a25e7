"""What is told of runs on other machines, as their outcomes come, and which are launched again."""

import threading
from collections.abc import Callable, Sequence

import pytest
from filelock import FileLock

from etude.launchers import remote
from etude.launchers.job import Job, State
from etude.launchers.remote import Launch, Outcome, Outcomes, RemoteRun, follow
from etude.launchers.slots import SweepFailed
from etude.runs.run_dir import RunDir

Make = Callable[..., RunDir]

ELSEWHERE = Outcome(0.0, 1.0, "another process is training it", elsewhere=True)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_POLL_INTERVAL", 0.01)


def ended(jobs: Sequence[Job], outcome: Outcome) -> Outcomes:
    yield from ((job, outcome) for job in jobs)


def nothing_again(jobs: Sequence[Job]) -> Outcomes:
    raise AssertionError("nothing is left to launch")


def launching(first: Outcomes, again: Launch = nothing_again) -> Launch:
    """Gives `first` when it is called first, and then what `again` gives."""
    launches = iter([first])
    return lambda left: next(launches, None) or again(left)


def test_a_run_that_another_process_trains_is_launched_again_when_that_has_gone(
    make_run: Make, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [Job(make_run("A1")), Job(make_run("A2"))]
    other = FileLock(jobs[0].run_dir.lock_file, thread_local=False)
    other.acquire()
    launched = []

    def first() -> Outcomes:
        yield jobs[0], ELSEWHERE
        jobs[1].run_dir.write_result({"test": {}})
        yield jobs[1], Outcome(0.0, 1.0, "")
        threading.Timer(0.2, other.release).start()

    def again(left: Sequence[Job]) -> Outcomes:
        launched.append([job.name for job in left])
        assert not other.is_locked
        left[0].run_dir.write_result({"test": {}})
        return ended(left, Outcome(1.0, 2.0, ""))

    with caplog.at_level("INFO", "etude"):
        follow(jobs, launching(first(), again))
    assert launched == [["table3/A1 seed 1"]]
    assert [job.state for job in jobs] == [State.FINISHED] * 2
    said = [message for message in caplog.messages if "A1" in message]
    assert said[0] == "table3/A1 seed 1: left to another process"
    assert "finished in" in said[1]


def test_a_run_that_another_process_has_finished_is_not_launched_again_and_fails_no_sweep(
    make_run: Make, caplog: pytest.LogCaptureFixture
) -> None:
    job = Job(make_run("A1"))

    def first() -> Outcomes:
        yield job, ELSEWHERE
        job.run_dir.write_result({"test": {}})

    with caplog.at_level("INFO", "etude"):
        follow([job], launching(first()))
    assert job.state is State.FINISHED
    assert "table3/A1 seed 1: finished by another process" in caplog.text


def test_a_run_that_is_taken_again_and_again_is_come_back_to_every_time(make_run: Make) -> None:
    job = Job(make_run("A1"))
    launches: list[int] = []

    def again(left: Sequence[Job]) -> Outcomes:
        launches.append(len(left))
        if len(launches) < 3:
            return ended(left, ELSEWHERE)
        job.run_dir.write_result({"test": {}})
        return ended(left, Outcome(0.0, 1.0, ""))

    follow([job], launching(ended([job], ELSEWHERE), again))
    assert launches == [1, 1, 1]


def test_fail_fast_ends_at_the_first_failure_and_lets_go_of_what_was_launched(make_run: Make) -> None:
    jobs = [Job(make_run("A1")), Job(make_run("A2"))]
    closed = []

    def launched() -> Outcomes:
        try:
            yield from ended(jobs, Outcome(0.0, 1.0, "exit status 1, without a result"))
        finally:
            closed.append(True)

    with pytest.raises(SweepFailed, match=r"(?s)1 of 2 runs failed.*1 were stopped or not begun"):
        follow(jobs, launching(launched()), fail_fast=True)
    assert closed


def test_a_result_that_a_network_file_system_shows_late_is_waited_for(make_run: Make) -> None:
    run = make_run("A1")
    jobs = [Job(run)]
    writes = threading.Timer(0.3, run.write_result, [{"test": {}, "finished": True}])
    writes.start()
    follow(jobs, launching(ended(jobs, Outcome(0.0, 1.0, ""))))
    assert jobs[0].state is State.FINISHED


def test_a_result_that_never_appears_is_a_failure_of_this_run(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_NFS_CACHE", 0.2)
    jobs = [Job(make_run("A1"))]
    with pytest.raises(SweepFailed, match="its result, which was written on another machine, cannot be seen on this"):
        follow(jobs, launching(ended(jobs, Outcome(0.0, 1.0, ""))))


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
