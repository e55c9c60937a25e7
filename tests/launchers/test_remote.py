"""What is told of runs on other machines, as their endings come."""

from collections.abc import Callable

import pytest

from etude.launchers.job import Job
from etude.launchers.remote import Ending, follow
from etude.runs.run_dir import RunDir
from etude.runs.run_state import State


def test_a_run_that_another_process_trains_fails_no_sweep(
    make_run: Callable[..., RunDir], caplog: pytest.LogCaptureFixture
) -> None:
    job = Job(make_run("A1"))
    with caplog.at_level("INFO", "etude"):
        follow([job], (pair for pair in [(job, Ending(0.0, 1.0, "another process is training it", elsewhere=True))]))
    assert job.state is State.ELSEWHERE
    assert "table3/A1 seed 1: left to another process" in caplog.text
