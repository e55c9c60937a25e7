from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the study `mine`, in the `experiments` of the place where the user stands."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "experiments" / "mine"
    folder.mkdir(parents=True)
    return folder
