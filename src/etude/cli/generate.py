"""`etude generate`: continue each line of standard input with a trained language model."""

import sys
from typing import Any

from etude.cli.hydra_app import run_task_on_a_run
from etude.cli.translate import blocks, read_stdin, tell_unknown
from etude.config.quoting import quote_text
from etude.logs import logging_to
from etude.trained.run import load

_CHUNK = 64  # lines that are continued in one batch


def main(words: list[str]) -> None:
    """Continue the lines of standard input, or `prompt`."""
    run_task_on_a_run("generate", _generate, [_as_text(word) for word in words])


def _as_text(word: str) -> str:
    """Quote a prompt that Hydra would read as something else than a text, such as a number or several values."""
    key, _, value = word.partition("=")
    return f"{key}={quote_text(value)}" if key == "prompt" and value != "null" and value[:1] not in "'\"" else word


def _generate(config: dict[str, Any], typed: list[str]) -> None:
    """Write one text for each line, which may be empty.

    Raises:
        UserError: there is no such run, it is not a language model, a line is not UTF-8, or a value of the sampling is
            out of range.
    """
    logging_to(None)
    run = load(config["run"], device=config["device"])
    run.generate([], **config["sampling"])  # refuses a task or a sampling that does not suit, before anything is read
    text = read_stdin() if config["prompt"] is None else None
    done = 0
    for block in tell_unknown(blocks(text or [config["prompt"]], _CHUNK), run.tokenizer):
        sys.stdout.writelines(f"{line}\n" for line in run.generate(block, first=done, **config["sampling"]))
        sys.stdout.flush()
        done += len(block)
    if text and text.failure:
        raise text.failure
