import os
import subprocess
import sys
from pathlib import Path

import pytest

from etude.store import cores
from etude.store.cores import usable_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity")
def test_the_cores_are_those_this_process_may_use() -> None:
    core = min(os.sched_getaffinity(0))
    program = "from etude.store.cores import usable_cores; print(usable_cores())"
    pinned = subprocess.run(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}]); {program}"],
        capture_output=True,
        text=True,
    )
    assert pinned.stdout == "1\n"
    assert usable_cores() >= 1


@pytest.mark.parametrize(
    ("quota", "usable"),
    [("200000 100000", 2), ("250000 100000", 2), ("50000 100000", 1), ("6400000 100000", 8), ("max 100000", 8)],
)
def test_a_container_has_the_cores_of_its_quota(
    quota: str, usable: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cores, "_QUOTA", tmp_path / "cpu.max")
    assert usable_cores() == 8
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert usable_cores() == usable
