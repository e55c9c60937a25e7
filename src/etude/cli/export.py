"""`etude export`: write a trained run for another program."""

import sys
from collections.abc import Sequence

from etude.cli.arguments import parse
from etude.errors import UserError
from etude.logs import logging_to
from etude.trained.run import load

HELP = """usage: etude export RUN DIR|FILE.safetensors

Writes a trained model to a new folder: model.safetensors, the weights by their
names; config.json, every value of its config; and sentencepiece.model, which
turns text into subwords and back. Or the weights alone, to a file. RUN is a
directory, its hash, or study/arm/seed, such as table3/A1/1.
"""


def main(words: Sequence[str]) -> None:
    """Export a trained run."""
    args = parse("export", HELP, words or ["--help"])
    if len(args.words) != 2:
        raise UserError("name one run and a folder to write: etude export runs/... DIR")
    logging_to(None)
    run, place = args.words
    load(run).export(place)
    sys.stdout.write(f"{place}\n")
