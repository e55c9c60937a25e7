import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.launch.resources import Slots
from etude.launch.slots import run_side_by_side
from etude.launch.sweep import SweepFailed
from etude.store.log import last_lines
from etude.store.run_dir import RunDir


def test_the_last_lines_are_whole_and_few(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"".join(b"line %d\n\n" % number for number in range(9999)) + b"caf\xe9\r\n10%\r90%")
    lines, code = last_lines(log)
    assert lines[-3:] == ["line 9998", "caf\N{REPLACEMENT CHARACTER}", "90%"]
    assert (len(lines), code) == (15, None)


def test_a_log_that_is_not_there_has_no_last_line(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "log.txt") == ([], None)


RANK = """
import os, sys, time
if os.environ["RANK"] == "1":
    {end}
time.sleep(120)
"""
ENDS = {
    "error": ("raise ValueError('the loss is not a number')", "exit status 1, without", "ValueError: the loss is"),
    "killed": ("os.kill(os.getpid(), 9)", "killed by SIGKILL (the machine may be out of memory);", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_rank_that_dies_ends_its_run_and_says_why_in_spite_of_torchrun(
    end: str, make_run: Callable[..., RunDir], tmp_path: Path
) -> None:
    program, reason, said = ENDS[end]
    script = tmp_path / "rank.py"
    script.write_text(RANK.format(end=program))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    with pytest.raises(SweepFailed) as failure:
        run_side_by_side(
            [make_run("A1", devices=2)],
            Slots(workers=2),
            command=lambda run: [*torchrun, str(script)],
        )
    assert f"table3/A1 seed 1 failed: {reason}" in str(failure.value)
    assert said in str(failure.value)
    assert "ChildFailedError" not in str(failure.value)


REPORT = "E1129 16:40:07.123000 4242 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: 2) rank: 1"


def test_a_mistake_that_torchrun_reports_is_not_made_twice(make_run: Callable[..., RunDir]) -> None:
    """Its own exit status is 1."""
    torchrun = [sys.executable, "-c", f"print({REPORT!r}); raise SystemExit(1)"]
    with pytest.raises(SweepFailed, match="table3/A1 seed 1 failed: exit status 2, without"):
        run_side_by_side([make_run("A1")], Slots(), retries=1, command=lambda run: torchrun)
