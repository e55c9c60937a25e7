"""`etude export`: write a trained run for another program."""

import sys
from collections.abc import Sequence
from pathlib import Path

from etude.cli.arguments import parse
from etude.errors import UserError
from etude.logs import logging_to
from etude.store.run_dir import RunDir

HELP = """usage: etude export RUN DIR

Writes a trained model to a new folder: model.safetensors, the weights by their
names; config.json, every value of its config; and sentencepiece.model, which
turns text into subwords and back.
"""


def main(words: Sequence[str]) -> None:
    """Export a trained run."""
    args = parse("export", HELP, words or ["--help"])
    if len(args.words) != 2:
        raise UserError("name one run and a folder to write: etude export runs/... DIR")
    logging_to(None)
    from etude.inspect.export import export

    run, folder = args.words
    export(RunDir.at(run), Path(folder))
    sys.stdout.write(f"{folder}\n")
