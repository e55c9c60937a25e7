import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from etude.rundir import RunDir

FINISH = "import json, pathlib, sys; pathlib.Path(sys.argv[1], 'result.json').write_text(json.dumps({result}))"


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunDir]:
    """Fabricates a frozen run directory."""

    def make(arm: str, seed: int = 1, layers: int = 2) -> RunDir:
        path = tmp_path / "runs" / "table3" / arm / f"seed{seed}-0123abcd"
        path.mkdir(parents=True)
        config = {"model": {"n_layers": layers, "d_model": 8, "d_ff": 16}, "budget": {"max_steps": 100}}
        (path / "config.yaml").write_text(json.dumps(config))
        return RunDir(path)

    return make


@pytest.fixture
def finish() -> str:
    """A child's program that finishes its run."""
    test = {"perplexity": 3.21, "bleu": 45.6}
    return FINISH.format(result={"test": test, "steps": 100, "parameters": 526_000, "finished": True})


@pytest.fixture
def programs() -> Callable[[dict[str, str]], Callable[[RunDir], Sequence[str]]]:
    """Turns programs by arm into the command that runs the arm's program with its directory as argument."""

    def command(by_arm: dict[str, str]) -> Callable[[RunDir], Sequence[str]]:
        return lambda run_dir: [sys.executable, "-c", by_arm[run_dir.path.parent.name], str(run_dir.path)]

    return command
