"""What is told before anything is spent, and which runs a sweep has."""

import json
from pathlib import Path

import pytest

from etude.cli.main import main
from etude.search.sweep_file import planned_runs

from .recorded import assert_as_recorded

SWEEPS = sorted(Path(__file__).with_name("sweeps").glob("*.yaml"))
SHIPPED = ["table3", "heads", "widths", "learning_rate", "smoke", "modern", "axes"]


@pytest.mark.parametrize("scale", ["pocket", "full"])
def test_the_plan_of_table_3_is_as_recorded(
    scale: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETUDE_CACHE", str(tmp_path / "cache"))  # without a text, whose lengths would be counted
    with pytest.raises(SystemExit) as end:
        main(["plan", "table3", f"scale={scale}", "device=a100", "--json"])
    assert end.value.code == 0
    assert_as_recorded(f"plan-table3-{scale}", json.loads(capsys.readouterr().out), relative=1e-9)


@pytest.mark.parametrize("name", [*SHIPPED, *map(str, SWEEPS)], ids=lambda name: Path(name).stem)
def test_a_sweep_has_the_runs_that_were_recorded(name: str) -> None:
    assert_as_recorded(f"sweep-{Path(name).stem}", planned_runs(name, []))
