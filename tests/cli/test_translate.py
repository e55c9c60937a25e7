"""What `etude translate` reads."""

import io
import sys
from itertools import count
from pathlib import Path
from unicodedata import normalize

import pytest

from etude.cli.translate import blocks, read_stdin, tell_unknown
from etude.data.lines import read_lines
from etude.data.tokenizer import SentencePiece, Tokenizer
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


def test_lines_are_read_as_those_of_a_file_that_is_trained_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A byte-order mark is no word of the first line, which would be translated as an unknown one."""
    text = "\ufeffthe old woman\r\n\r\nthe \ufeff dog".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    (tmp_path / "in.txt").write_bytes(text)
    assert [line.strip() for line in read_stdin()] == [line.strip() for line in read_lines(tmp_path / "in.txt")]


@pytest.mark.parametrize(("terminal", "size"), [(True, 1), (False, 3)])
def test_lines_are_answered_before_their_input_ends_one_by_one_at_a_terminal(
    terminal: bool, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminal, raising=False)
    read: list[int] = []
    endless = (read.append(number) or f"line {number}" for number in count())
    assert next(blocks(endless, 3)) == [f"line {number}" for number in range(size)]
    assert len(read) == size


def test_no_line_is_lost_between_blocks() -> None:
    assert list(blocks("abcdefg", 3)) == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert list(blocks([], 3)) == []


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Subwords of German letters, as they are written today (NFC)."""
    options = {"model_type": "bpe", "hard_vocab_limit": False, "vocab_size": 60, "character_coverage": 1.0}
    model = tmp_path_factory.mktemp("german") / "tokenizer.model"
    model.write_bytes(
        SentencePiece(**options, normalization="identity").train(["der alte Bär läuft über den Fluss"] * 9)
    )
    return Tokenizer(model)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("über den Bär", None),
        ("", None),
        ("Привет, мир", "100 % of the characters of the first 3 lines are not in"),
        (normalize("NFD", "der Bär läuft"), "COMBINING DIAERESIS (U+0308) above all"),
    ],
)
def test_input_of_unknown_characters_is_told_once_and_at_once(
    line: str, told: str | None, german: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    given = [[line] * 3, [line]]
    passed = tell_unknown(iter(given), german)
    assert next(passed) == given[0]
    assert [told in message for message in caplog.messages] == [True] * bool(told)
    assert list(passed) == given[1:]
    assert len(caplog.messages) == bool(told)


def test_a_rare_character_is_not_worth_a_line(german: Tokenizer, caplog: pytest.LogCaptureFixture) -> None:
    assert list(tell_unknown([["der Bär läuft"] * 50 + ["der Bär läuft!"]], german))
    assert not caplog.messages
