"""`etude translate`: a filter from lines to lines."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from etude.errors import UserError
from etude.logs import logging_to
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.training.build import load_trained

_CHUNK = 512  # lines that are batched together


def translate(config: dict[str, Any], lines: Iterable[bytes], out: TextIO, typed: Iterable[str] = ()) -> None:
    """Write one translation for each line, as soon as a block of them is done.

    Args:
        config: of the verb.
        lines: what is to be translated.
        out: where to write.
        typed: the overrides: what they do not say of the decoding is as in the run.

    Raises:
        UserError: there is no such run, its checkpoint is missing or torn, or a line is not UTF-8.
    """
    logging_to(None)
    trained, transformer, tokenizer = load_trained(RunDir.at(config["run"]))
    transformer.to(build.device(config["device"]))
    translator = build.translator(trained, transformer, tokenizer, build.search(trained, config, typed))
    text = _Decoded(lines)
    for translation in translator.translate_stream(text, chunk=1 if sys.stdin.isatty() else _CHUNK):
        out.write(f"{translation}\n")
        out.flush()
    if text.failure:
        raise text.failure


class _Decoded:
    """Lines of UTF-8 text, up to the first that is not; that one's sentence waits until the others are answered."""

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
            yield text.rstrip("\r\n")
