import io
import logging
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from etude.files import write_json
from etude.launch.dashboard import dashboard, sweep_table
from etude.launch.job import Job
from etude.launch.sweep import jobs_of
from etude.store.run_dir import RunDir
from etude.store.run_state import State
from etude.terminal import format_duration

Make = Callable[..., RunDir]
RESULT = {"steps": 100, "parameters": 526_000, "test": {"perplexity": 3.214, "bleu": 45.61}, "finished": True}


def terminal(height: int = 50, width: int = 110) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)


def drawn(jobs: list[Job], room: int = 50) -> list[str]:
    console = terminal()
    console.print(sweep_table(jobs, room))
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def running(run: RunDir, retries: int = 0) -> Job:
    job = Job(run, retries)
    job.state, job.started, job.attempts = State.RUNNING, time.time() - 5, 1
    return job


def test_the_table_fills_in_as_runs_finish(make_run: Make) -> None:
    runs = [make_run(arm) for arm in ("base", "A1", "A2", "A3")]
    jobs = [Job(runs[0]), running(runs[1]), running(runs[2]), Job(runs[3])]
    jobs[3].state = State.FAILED
    progress = {"state": "evaluating", "step": 1500, "max_steps": 2000, "loss": 2.5, "tokens_per_second": 4321.0}
    write_json(runs[2].progress_file, progress | {"seconds_left": 75.4})
    before = drawn(jobs)
    assert before[1:] == [
        "table3/base seed 1 waiting",
        "table3/A1 seed 1 starting 0/100",
        "table3/A2 seed 1 evaluating 1,500/2,000 2.500 4,321 1:15",
        "table3/A3 seed 1 failed",
        "2 running, 1 failed, 1 waiting",
    ]
    runs[0].write_result(RESULT)
    jobs[0].state = State.FINISHED
    assert drawn(jobs)[1] == "table3/base seed 1 finished 100 3.21 45.6 526,000"


def test_a_run_that_diverged_is_shown_as_such_and_told_at_once_and_later_too(make_run: Make) -> None:
    run = make_run("A1")
    job, console = running(run), terminal()
    run.write_result(RESULT | {"steps": 40, "diverged": "the loss is nan at step 40"})
    job.state = job.outcome
    with dashboard([job], console) as show:
        show.ended(job)
    assert isinstance(console.file, io.StringIO)
    assert "table3/A1 seed 1 diverged: the loss is nan at step 40" in console.file.getvalue()
    for shown in (job, Job(run)):
        assert drawn([shown])[1:] == ["table3/A1 seed 1 diverged 40 526,000", "1 diverged"]


def test_progress_that_an_earlier_process_left_is_not_shown_as_this_ones(make_run: Make) -> None:
    run = make_run("A1")
    write_json(run.progress_file, {"state": "training", "step": 50})
    os.utime(run.progress_file, (time.time() - 3600,) * 2)
    assert "starting" in drawn([running(run)])[1]


def test_where_rows_do_not_fit_the_running_and_the_failed_are_shown(make_run: Make) -> None:
    jobs = [Job(make_run(f"A{i}")) for i in range(10)]
    jobs[4].state, jobs[8].state = State.RUNNING, State.FAILED
    assert [line.split()[0] for line in drawn(jobs, room=3)[1:4]] == ["table3/A0", "table3/A4", "table3/A8"]


@pytest.mark.parametrize(
    ("width", "told"), [(110, "2.500 4,321 1:01:15"), (80, "2.500 1:01:15"), (68, "10,500/12,000 1:01:15")]
)
def test_a_narrow_terminal_cuts_no_figure_off(make_run: Make, width: int, told: str) -> None:
    jobs = [running(make_run("A2")), Job(make_run("base"))]
    progress = {"state": "evaluating", "step": 10_500, "max_steps": 12_000, "loss": 2.5, "tokens_per_second": 4321.0}
    write_json(jobs[0].run_dir.progress_file, progress | {"seconds_left": 3675})
    jobs[1].run_dir.write_result(RESULT)
    jobs[1].state = State.FINISHED
    console = terminal(width=width)
    with dashboard(jobs, console):
        pass
    assert isinstance(console.file, io.StringIO)
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    assert any(line.endswith(told) for line in lines)
    assert any(line.startswith("table3/base seed 1 finished 100 3.21 45.6") for line in lines)
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("width", [80, 120])
def test_the_runs_of_a_search_have_short_names_beside_their_state_and_step(tmp_path: Path, width: int) -> None:
    runs = []
    for number in range(3):
        run = RunDir(tmp_path / "runs" / "single" / "base" / f"seed1-0123abc{number}")
        run.path.mkdir(parents=True)
        run.config_file.write_text('{"budget": {"max_steps": 12000}, "choices": {}}\n')
        drawn = [f"model.heads={number}", f"budget.lr_factor=1.879370119505945{number}", "schedule=wsd", "seed=1"]
        drawn += [f"loss.smoothing=0.0866179557869{number}", f"optimizer.weight_decay=0.0012345678901234{number}"]
        run.overrides_file.write_text("\n".join(drawn))
        runs.append(run)
    jobs = jobs_of(runs)
    jobs[0].state, jobs[0].attempts = State.RUNNING, 1
    console = terminal(width=width)
    with dashboard(jobs, console):
        pass
    assert isinstance(console.file, io.StringIO)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    first = next(line for line in lines if line[0] == "heads=0")
    assert first[1] == "lr_factor=1.879"
    assert first[-2:] == ["starting", "0/12,000"]
    assert jobs[0].name.startswith("single/base seed 1 model.heads=0 budget.lr_factor=1.8793701195059450")


@pytest.mark.parametrize("width", [80, 130])
def test_the_table_of_a_search_shows_state_step_rung_and_best(make_run: Make, width: int) -> None:
    job = running(make_run("A2"))
    job.name_suffix = (
        "trial 12 budget.lr_factor=1.8793701195059450 budget.warmup_steps=312 model.dropout=0.0866179557869"
    )
    progress = {"state": "evaluating", "step": 10_500, "max_steps": 12_000, "loss": 2.5, "tokens_per_second": 4321.0}
    write_json(job.run_dir.progress_file, progress | {"seconds_left": 3675})
    console = terminal(width=width)
    with dashboard([job], console, searched=lambda: {job.run_dir: {"rung": "2/3", "best": "2.3457"}}):
        pass
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    header = next(line.split() for line in lines if " rung " in line)
    assert header[1:6] == ["state", "step", "rung", "best", "left"]
    row = next(line for line in lines if line.startswith("trial 12 lr_factor=1.879"))
    assert re.search(r"evaluating +10,500/12,000 +2/3 +2\.3457 +1:01:15", row)
    assert len(row) <= width


def test_a_failure_is_told_above_the_live_table_at_once(make_run: Make) -> None:
    console = terminal()
    job = running(make_run("A1"))
    with dashboard([job], console) as show:
        job.run_dir.log_file.write_text("it went wrong\n")
        job.state, job.reason = State.FAILED, "exit status 1"
        show.ended(job)
        assert isinstance(console.file, io.StringIO)
        assert "it went wrong" in console.file.getvalue()


def test_without_a_terminal_each_run_has_one_line_at_its_start_and_one_at_its_end(
    make_run: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the metrics that the study had when the sweep began: its file may be edited meanwhile."""
    caplog.set_level(logging.INFO, logger="etude")
    monkeypatch.chdir(tmp_path)
    study = tmp_path / "experiments" / "table3" / "study.yaml"
    study.parent.mkdir(parents=True)
    study.write_text(
        "baseline: base\narms: {base: []}\nmetrics: {ppl: {}, steps: {key: steps, digits: 0}, text: {key: test}}\n"
    )
    job = running(make_run("A1"))
    with dashboard([job], Console(file=io.StringIO())) as show:
        show.started(job)
        show.refresh()
        study.write_text("baseline: bas")
        job.run_dir.write_result(RESULT)
        job.state, job.ended = State.FINISHED, job.started + 62
        show.ended(job)
    assert caplog.messages == [
        "runs: 1, finished before: 0",
        "table3/A1 seed 1: started",
        "table3/A1 seed 1: finished in 1:02, PPL 3.21, steps 100 (1 of 1)",
    ]


def test_retries_are_counted_where_a_run_stands_and_where_it_fails(
    make_run: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    job = running(make_run("A1"), retries=2)
    with dashboard([job], Console(file=io.StringIO())) as show:
        job.state, job.reason = State.FAILED, "killed by SIGKILL"
        show.ended(job)
        job.state = State.WAITING
        assert "waiting, retry 1/2" in drawn([job])[1]
        job.state, job.attempts = State.RUNNING, 2
        show.started(job)
        assert "starting, retry 1/2" in drawn([job])[1]
    assert caplog.messages[1].endswith("it is tried again, behind those that wait: retry 1/2")
    assert caplog.messages[2] == "table3/A1 seed 1: started again, retry 1/2"


def test_the_gpus_of_the_running_are_shown_where_gpus_are_used(
    make_run: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    jobs = [running(make_run("A1")), Job(make_run("A2"))]
    assert "GPU" not in drawn(jobs)[0]
    jobs[0].gpus = ("1", "GPU-5c2d81f0-77aa")
    assert drawn(jobs)[:3] == [
        "run state GPU step loss tokens/s left PPL BLEU params",
        "table3/A1 seed 1 starting 1,GPU-5c2d81f0 0/100",
        "table3/A2 seed 1 waiting",
    ]
    with dashboard(jobs, Console(file=io.StringIO())) as show:
        show.started(jobs[0])
    assert caplog.messages[-1] == "table3/A1 seed 1: started on GPU 1,GPU-5c2d81f0"


def test_a_sweep_that_is_stopping_says_how_long_and_how_to_end_it_now(make_run: Make) -> None:
    console = terminal()
    job = running(make_run("A1"))
    with dashboard([job], console) as show:
        show.stopping(1, 60.0)
        job.signal(signal.SIGTERM)
        assert "stopping" in drawn([job])[1]
    assert isinstance(console.file, io.StringIO)
    assert "stopping: 1 run has 60 s to write a checkpoint; Ctrl-C again ends everything now" in console.file.getvalue()


class Gone(io.StringIO):
    """A terminal whose window may be closed."""

    closed_window = False

    def write(self, text: str) -> int:
        if self.closed_window:
            raise OSError(5, "Input/output error")
        return super().write(text)


def test_a_terminal_that_cannot_move_its_cursor_gets_the_lines(
    make_run: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    caplog.set_level(logging.INFO, logger="etude")
    job = running(make_run("A1"))
    with dashboard([job], terminal()) as show:
        show.started(job)
    assert caplog.messages[1:] == ["table3/A1 seed 1: started"]


def test_a_terminal_that_has_gone_ends_no_sweep(make_run: Make) -> None:
    window = Gone()
    job = running(make_run("A1"))
    with dashboard([job], Console(file=window, force_terminal=True)) as show:
        show.started(job)
        show.refresh()
        window.closed_window = True
        job.state, job.reason = State.FAILED, "killed by SIGKILL"
        show.ended(job)
        show.refresh()
        show.stopping(1, 60.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0.4, "0:00"), (59.6, "1:00"), (725, "12:05"), (10961, "3:02:41")]
)
def test_durations_are_clock_like(seconds: float | None, text: str) -> None:
    assert format_duration(seconds) == text
