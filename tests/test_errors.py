"""What a mistake of the user's is answered with."""

from pathlib import Path

import pytest

from etude.errors import UserError, did_you_mean
from etude.files import write_text

STUDIES = ["axes", "families", "history", "modern", "table1", "table3"]


@pytest.mark.parametrize(
    ("word", "choices", "answer"),
    [
        ("tabel3", STUDIES, "did you mean table3 or table1?"),
        ("TABLE3", STUDIES, "did you mean table3 or table1?"),
        ("othername", STUDIES, f"choose one of {', '.join(STUDIES)}"),
        ("", STUDIES, f"choose one of {', '.join(STUDIES)}"),
        ("A2", ["A1", "base"], "did you mean A1?"),
        ("x", [], "there is nothing to choose from"),
        ("positon", ["Position", "norm"], "did you mean Position?"),
    ],
)
def test_only_what_looks_alike_is_suggested(word: str, choices: list[str], answer: str) -> None:
    assert did_you_mean(word, choices) == answer


@pytest.mark.parametrize("name", [".", "/", "folder"])
def test_a_folder_is_no_file_to_write(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*, which is a folder: name a file"):
        write_text(Path(name), "")
    assert [*tmp_path.iterdir()] == [tmp_path / "folder"]
