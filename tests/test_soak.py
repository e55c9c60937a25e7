"""A sweep or a search may be killed and typed again as often as one likes."""

import re
import subprocess
from pathlib import Path

import pytest
from tests import warm

SOAK = Path(__file__).parents[1] / "benchmarks" / "soak.py"


def strike(*words: str) -> str:
    """Let one blow fall, a SIGKILL after 5 seconds, and return the last line; by hand it is hundreds."""
    command = [warm.python(), SOAK, "--kills", "1", "--most", "6", "--seed", "6", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.slow(minutes=1)
def test_a_sweep_that_is_killed_and_typed_again_ends_as_one_that_was_left_in_peace() -> None:
    assert re.search(r"^1 blows .*; (\d+) of \1 runs are the same to the last bit$", strike("--steps", "100"))


@pytest.mark.slow(minutes=1)
def test_a_search_that_is_killed_and_typed_again_has_the_trials_of_one_that_was_left_in_peace() -> None:
    struck = strike("--search", "--trials", "3", "--steps", "200")
    assert re.search(r"^1 blows .* in \d+ searches; every trial is the same to the last bit$", struck)
