"""A fork ends as a process of its own does."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm

SCRIPT = """
import atexit, sys
atexit.register(print, "after all")
print("said")
{end}
"""


@pytest.mark.parametrize(
    "end", ["", "sys.exit()", "sys.exit(3)", "sys.exit('why')", "raise ValueError('why')", "raise KeyboardInterrupt"]
)
def test_the_status_and_what_is_said_are_those_of_a_process(end: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(end=end))
    process, fork, client = (
        subprocess.run([sys.executable, str(script)], capture_output=True, text=True),
        warm.run(str(script)),
        subprocess.run([warm.python(), str(script)], capture_output=True, text=True),
    )
    for found in (fork, client):
        assert (found.returncode, found.stdout) == (process.returncode, process.stdout)
        assert found.stderr.splitlines()[-1:] == process.stderr.splitlines()[-1:]
