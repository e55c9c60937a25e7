"""`etude translate`: translate lines of standard input to lines of standard output."""

import json
import logging
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

from etude.cli.hydra_app import run_task_on_a_run
from etude.errors import UserError, did_you_mean
from etude.logs import logging_to
from etude.trained.run import load

if TYPE_CHECKING:
    from etude.data.tokenizer import Tokenizer
    from etude.trained.translate import Translation

log = logging.getLogger(__name__)

_CHUNK = 512  # lines that are sorted into batches together
_FORMATS = ("text", "tsv", "jsonl")
_COLUMNS = {"scores": ("score", "log_probability"), "alignments": ("alignment",)}
Write = Callable[[int, str, "Sequence[Translation]"], str]


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

    write, header = _writer(config)
    run = load(config["run"], device=config["device"])
    options = {key: config[key] for key in ("n_best", "alignments", "layer", "head")}
    options |= build.decoding_config(run.config, config, typed) or {}
    run.translate([], **options)  # raises for a task, search or heads that do not suit, before anything is read
    text, done = read_stdin(), 0
    sys.stdout.write(header)
    for block in tell_unknown(blocks(text, _CHUNK), run.tokenizer):
        for number, (line, found) in enumerate(zip(block, run.translate(block, **options), strict=True), done + 1):
            sys.stdout.write(write(number, line, found))
        sys.stdout.flush()
        done += len(block)
    if text.failure:
        raise text.failure


def _writer(config: dict[str, Any]) -> tuple[Write, str]:
    """Return the function that formats what was found for a line, from its number from 1, and what is written first.

    Raises:
        UserError: the format is unknown, or has no place for what is asked for.
    """
    asked = [key for key in ("scores", "alignments") if config[key]]
    more = [*(["n_best"] if config["n_best"] > 1 else []), *asked]
    chosen = config["format"] or ("tsv" if more else "text")
    if chosen not in _FORMATS:
        raise UserError(f"format={chosen}: {did_you_mean(chosen, _FORMATS)}")
    if chosen == "text":
        if more:
            raise UserError(f"format=text has no place for {more[0]}: say format=tsv or format=jsonl")
        return lambda number, line, found: f"{found[0].text if found else ''}\n", ""
    columns = [column for key in asked for column in _COLUMNS[key]]
    if chosen == "jsonl":
        return partial(_as_json, columns), ""
    return partial(_as_rows, columns), "\t".join(["line", "rank", "translation", *columns]) + "\n"


def _as_json(columns: Sequence[str], number: int, line: str, found: Sequence["Translation"]) -> str:
    """Return an object for a line, with a list of its translations."""
    translations = [{"translation": one.text, **dict(zip(columns, _cells(one, columns), strict=True))} for one in found]
    return json.dumps({"line": number, "source": line, "translations": translations}, ensure_ascii=False) + "\n"


def _as_rows(columns: Sequence[str], number: int, line: str, found: Sequence["Translation"]) -> str:
    """Return a row for each translation; one with empty cells for a blank line."""
    rows = [[rank, one.text, *_cells(one, columns)] for rank, one in enumerate(found, start=1)]
    return "".join(
        "\t".join("" if cell is None else str(cell) for cell in [number, *row]) + "\n"
        for row in rows or [[1, "", *[""] * len(columns)]]
    )


def _cells(translation: "Translation", columns: Sequence[str]) -> list[float | str | None]:
    """Return what some columns hold; None where no translation has a probability above zero."""
    numbers = {key: getattr(translation, key) for key in _COLUMNS["scores"]}
    values = {key: round(number, 4) if isfinite(number) else None for key, number in numbers.items()}
    return [translation.pharaoh if key == "alignment" else values[key] for key in columns]


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
