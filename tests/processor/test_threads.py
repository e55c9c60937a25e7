"""Threads that wait let go of their core, unless somebody has said how they shall wait."""

import subprocess
import sys

import pytest

from etude.processor.threads import wait_briefly


@pytest.mark.parametrize(
    ("said", "then"),
    [
        ({}, {"GOMP_SPINCOUNT": "40000"}),
        ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE"}),
    ],
)
def test_what_the_environment_says_counts(said, then):
    wait_briefly(said)
    assert said == then


@pytest.mark.parametrize("module", ["etude.cli.main", "etude.launch.job"])
def test_it_can_be_said_before_torch_is_imported(module):
    program = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
