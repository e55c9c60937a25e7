"""What a launcher is given, in place of training it."""

from pathlib import Path

import optuna
import pytest
from hydra.core.plugins import Plugins

from etude.search.search import Search

Given = list[Search | list[list[str]]]


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    """What the launcher is given by commands in a folder of the test's own: searches, or lists of runs."""
    Plugins.instance()  # imports the plugins anew, the first time
    from hydra_plugins.etude_launchers import FrozenLauncher, SlotsLauncher

    found: Given = []

    def carry_out(self: FrozenLauncher, search: Search) -> list[optuna.Study]:
        found.append(search)
        return [optuna.create_study(directions=["minimize"] * len(search.objectives))]

    monkeypatch.setattr(FrozenLauncher, "search", carry_out)
    monkeypatch.setattr(SlotsLauncher, "launch", lambda self, runs, initial_job_idx: found.append(runs) or [])
    monkeypatch.chdir(tmp_path)
    return found
