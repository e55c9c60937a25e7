"""`etude translate`: a filter from lines to lines."""

from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from etude import build
from etude.errors import UserError
from etude.logs import logging_to
from etude.rundir import RunDir


def translate(config: dict[str, Any], lines: Iterable[bytes], out: TextIO) -> None:
    """Write one translation for each line, as soon as a block of them is done.

    Raises:
        UserError: there is no such run, its checkpoint is missing or torn, or a line is not UTF-8.
    """
    logging_to(None)
    trained, transformer, tokenizer = build.trained(RunDir.at(config["run"]))
    transformer.to(build.device(config["device"]))
    translator = build.translator(trained, transformer, tokenizer, build.make(config["decoding"]))
    for translation in translator.translate_stream(_decoded(lines)):
        out.write(f"{translation}\n")
        out.flush()


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"standard input, line {number}: not UTF-8 text; convert it, with iconv for instance"
            ) from error
