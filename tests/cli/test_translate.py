"""What `etude translate` reads."""

import io
import sys

import pytest

from etude.cli.translate import read_stdin
from etude.errors import UserError


@pytest.mark.parametrize("terminal", [True, False])
def test_a_person_at_a_terminal_and_nobody_else_is_told_that_lines_are_waited_for(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = io.TextIOWrapper(io.BytesIO(b"the old woman\n"))
    monkeypatch.setattr(typed, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stdin", typed)
    assert list(read_stdin()) == ["the old woman"]
    assert ("reading from the terminal: type a line" in capsys.readouterr().err) is terminal


def test_a_standard_input_that_is_closed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """`etude translate run=DIR <&-`: Python then has none."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed: give a file"):
        read_stdin()
