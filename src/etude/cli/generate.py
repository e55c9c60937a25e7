"""`etude generate`: continue each line of standard input with a trained language model."""

import logging
import sys
from typing import Any

from etude.cli.hydra_app import run_task_on_a_run
from etude.cli.translate import blocks, read_stdin, tell_unknown
from etude.config.quoting import quote_text
from etude.logs import logging_to
from etude.store.run_dir import RunDir

log = logging.getLogger(__name__)

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
    from etude.config.parts import make
    from etude.decoding.sliding import Sliding
    from etude.tasks import build
    from etude.trained.load import load_trained

    sampling = make(config["sampling"])
    trained, model, tokenizer = load_trained(RunDir.at(config["run"]))
    build.task(trained, "generate")
    most = getattr(sampling, "max_length", None)  # a sampling of the user's own need not have it
    model.to(build.device(config["device"]))
    is_running = build.is_running(trained)
    read = Sliding(model, build.context(trained)) if is_running else model
    if not is_running and most is not None:
        build.check_positions(trained, most, f"sampling.max_length={most}")
    text = read_stdin() if config["prompt"] is None else None
    done = 0
    for block in tell_unknown(blocks(text or [config["prompt"]], _CHUNK), tokenizer):
        prompts = [tokenizer.encode(line) for line in block]
        for number, prompt in enumerate(prompts, start=done + 1):
            if most is not None and len(prompt) >= most:
                log.warning("line %d has %d subwords, and sampling.max_length=%d: it stays", number, len(prompt), most)
        with build.autocast(trained, model):
            texts = sampling(read, prompts, done)
        for tokens in texts:
            sys.stdout.write(f"{tokenizer.decode(tokens)}\n")
        sys.stdout.flush()
        done += len(block)
    if text and text.failure:
        raise text.failure
