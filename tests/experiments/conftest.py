"""A whole study, small: swept and reported as a user would, in an empty folder."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import warm


@pytest.fixture
def swept(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Sweeps a study with some overrides and reports it: what the terminal showed of the report, and its table."""

    def run(study: str, *overrides: str) -> tuple[str, str]:
        shown = ""
        for verb in (["sweep", study, *overrides], ["report", study, *overrides, "--markdown", "table.md"]):
            done = subprocess.run(
                [warm.python(), "-m", "etude", *verb],
                cwd=tmp_path,
                env=os.environ | {"ETUDE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                timeout=500,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            shown = done.stdout
        return shown, (tmp_path / "table.md").read_text(encoding="utf-8")

    return run
