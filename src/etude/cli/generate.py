"""`etude generate`: continue each line of standard input with a trained language model."""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from etude.cli.hydra_app import run_task_on_a_run
from etude.cli.translate import read_stdin
from etude.logs import logging_to
from etude.runs.run_dir import RunDir

if TYPE_CHECKING:
    from omegaconf import DictConfig

_CHUNK = 64  # lines that are continued in one batch


def main(words: list[str]) -> None:
    """Continue the lines of standard input, or `prompt`."""
    run_task_on_a_run("generate", _generate, words)


def _generate(config: "DictConfig") -> None:
    """Write one text for each line, which may be empty.

    Raises:
        UserError: there is no such run, it is not a language model, a line is not UTF-8, or a value of the sampling is
            out of range.
    """
    from etude.config.check import check
    from etude.config.parts import make
    from etude.config.resolve import resolve
    from etude.config.schema import Generate

    check(config, Generate)
    logging_to(None)
    from etude.tasks import build
    from etude.trained.load import load_trained

    sampling = make(resolve(config)["sampling"])
    trained, model, tokenizer = load_trained(RunDir.at(config.run))
    build.task(trained, "generate")
    model.to(build.device(config.device))
    text = read_stdin() if config.prompt is None else None
    done = 0
    for block in _blocks(text or [config.prompt], 1 if sys.stdin.isatty() else _CHUNK):
        with build.autocast(trained, model):
            texts = sampling(model, [tokenizer.encode(line) for line in block], done)
        for tokens in texts:
            sys.stdout.write(f"{tokenizer.decode(tokens)}\n")
        sys.stdout.flush()
        done += len(block)
    if text and text.failure:
        raise text.failure


def _blocks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(lines)
    while block := list(islice(rest, size)):
        yield block
