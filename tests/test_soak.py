"""A sweep may be killed and typed again as often as one likes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[1] / "benchmarks" / "soak.py"


@pytest.mark.slow(minutes=1)
def test_a_sweep_that_is_struck_at_random_moments_ends_as_one_that_was_left_in_peace() -> None:
    """Short here; by hand for hundreds of blows."""
    command = [sys.executable, str(SOAK), "--kills", "2", "--steps", "100", "--most", "8"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^2 blows .*; (\d+) of \1 runs are the same to the last bit$", done.stdout, re.MULTILINE)
