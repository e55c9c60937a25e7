"""`etude translate`: translate lines of standard input to lines of standard output."""

import logging
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from etude.cli.hydra_app import run_task_on_a_run
from etude.errors import UserError
from etude.logs import logging_to
from etude.trained.run import load

if TYPE_CHECKING:
    from etude.data.tokenizer import Tokenizer

log = logging.getLogger(__name__)

_CHUNK = 512  # lines that are sorted into batches together


def main(words: list[str]) -> None:
    """Translate the lines of standard input."""
    run_task_on_a_run("translate", _translate, words)


def _translate(config: dict[str, Any], typed: list[str]) -> None:
    """Write one translation for each line, as soon as a chunk of them is done.

    Raises:
        UserError: there is no such run, its checkpoint is missing or damaged, or a line is not UTF-8.
    """
    logging_to(None)
    from etude.tasks import build

    run = load(config["run"], device=config["device"])
    search = build.search(run.config, config, typed) or {}
    run.translate([], **search)  # raises for a task or a search that does not suit, before anything is read
    text = read_stdin()
    for block in tell_unknown(blocks(text, _CHUNK), run.tokenizer):
        sys.stdout.writelines(f"{translation}\n" for translation in run.translate(block, **search))
        sys.stdout.flush()
    if text.failure:
        raise text.failure


class Decoded:
    """Decoded lines, up to the first that is not UTF-8; a byte-order mark is dropped, as of the text trained on.

    The error for that line is kept in `failure`, to be raised after the lines before it have been translated.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.lines = lines
        self.failure: UserError | None = None

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self.lines, start=1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError:
                self.failure = UserError(
                    f"standard input, line {number}: not UTF-8 text; convert it, with iconv for instance"
                )
                return
            yield (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")


def blocks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield so many lines at a time, one at a terminal, so that endless input can be piped through."""
    rest, size = iter(lines), 1 if sys.stdin and sys.stdin.isatty() else size
    while block := list(islice(rest, size)):
        yield block


def tell_unknown(blocks: Iterable[list[str]], tokenizer: "Tokenizer") -> Iterator[list[str]]:
    """Yield the blocks, and warn once if more than 1 % of the characters read so far are not in the vocabulary."""
    unknown, read, lines, told = Counter[str](), 0, 0, False
    for block in blocks:
        if not told:
            unknown.update("".join(map(tokenizer.source.unknown, block)))
            read, lines = read + sum(len("".join(line.split())) for line in block), lines + len(block)
            if told := 100 * unknown.total() > read:
                [(first, _)] = unknown.most_common(1)
                log.warning(
                    "%.0f %% of the characters of the first %d lines are not in the vocabulary of the run, %s (U+%04X) "
                    "above all: is this another script, or another Unicode form (NFC, NFD) than it was trained on?",
                    *(100 * unknown.total() / read, lines, unicodedata.name(first, first), ord(first)),
                )
        yield block


def read_stdin() -> Decoded:
    """Return the lines of standard input; at a terminal, print that they are expected."""
    if sys.stdin is None:
        raise UserError("standard input is closed: give a file, < in.txt")
    if sys.stdin.isatty():
        sys.stderr.write(
            "reading from the terminal: type a line, and Ctrl-D after the last; or give a file, < in.txt\n"
        )
    return Decoded(sys.stdin.buffer)
