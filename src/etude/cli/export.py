"""`etude export`: convert a trained run for another program."""

import sys
from collections.abc import Sequence
from pathlib import Path

from etude.cli.arguments import parse
from etude.errors import UserError
from etude.logs import logging_to
from etude.runs.run_dir import RunDir

HELP = """usage: etude export RUN --ctranslate2 DIR [quantization=int8]

Exports a trained model for CTranslate2, which translates without PyTorch:
weights, vocabulary, sentencepiece model, and a README.md that says how to use
them. Transformers of every size, post- or pre-norm, can be exported, with most
variations; the others are refused by name. It needs
pip install 'etude[ctranslate2]'.

  --ctranslate2 DIR    the folder to write, which must not exist
  quantization=TYPE    int8, int16, float16 or bfloat16 weights, which are
                       smaller and less exact; by default float32
  run=RUN              the same as RUN
"""


def main(words: Sequence[str]) -> None:
    """Export a trained run for CTranslate2."""
    args = parse("export", HELP, words or ["--help"])
    runs = [*args.words, *filter(None, [args.options.get("run")])]
    if len(runs) != 1 or "--ctranslate2" not in args.options:
        raise UserError("name one run and a folder to write: etude export runs/... --ctranslate2 DIR")
    logging_to(None)
    from etude.inspect.export.export import export

    folder = Path(args.options["--ctranslate2"])
    export(RunDir.at(runs[0]), folder, quantization=args.options.get("quantization"))
    sys.stdout.write(f"{folder}\n")
