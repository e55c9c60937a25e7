"""`etude complexity`: Table 1 of the paper, measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from etude.cli.arguments import parse
from etude.errors import UserError
from etude.files import write_json, write_text
from etude.terminal import console

HELP = """usage: etude complexity [key=value ...] [--lengths N] [--widths D] [--repeats R]
                        [--output FILE] [--svg FILE]

One layer of each kind in Table 1: FLOPs counted, time and memory of a forward and a backward pass measured, exponents
of n and d fitted beside the paper's O(.); operations that wait for each other, and the longest path between two
positions, found by differentiation. A minute on two cores. An override changes the layers that have its key;
experiments/table1/layers.yaml says what the layers are.

  etude complexity                                         every layer
  etude complexity model.encoder.kernel=5                  convolutions over five positions
  etude complexity --lengths 64,128 --widths 32,64         on a smaller grid

  --lengths N      n, of the sentence, by commas; 32,64,128,256 if nothing is said
  --widths D       d, of the layer, by commas; 32,64,128,256 if nothing is said
  --repeats R      times that each cell is timed, in turn, for the median; 5 if nothing is said
  --output FILE    write all that was found as JSON
  --svg FILE       write log-log plots
"""
_DEFAULTS = {"--lengths": "32,64,128,256", "--widths": "32,64,128,256", "--repeats": "5"}


def main(words: Sequence[str]) -> None:
    """Measure the layers and print what was found."""
    arguments = parse("complexity", HELP, words)
    lengths, widths, repeats = (_numbers(flag, arguments.options) for flag in _DEFAULTS)
    if len(repeats) > 1:
        raise UserError("--repeats is one number, such as --repeats 5")
    if other := next((word for word in arguments.words if "=" not in word), None):
        raise UserError(f"{other!r} is not key=value, such as model.encoder.kernel=5")
    from etude.inspect.complexity.chart import draw_layers
    from etude.inspect.complexity.layers import load_layers
    from etude.inspect.complexity.study import machine, study_layers
    from etude.inspect.complexity.table import render_layers

    found = study_layers(load_layers(arguments.words), lengths, widths, repeats[0])
    console().print(render_layers(found))  # first: a file that cannot be written loses nothing
    if output := arguments.options.get("--output"):
        write_json(Path(output), {"overrides": arguments.words, "machine": machine(), "layers": found})
    if picture := arguments.options.get("--svg"):
        write_text(Path(picture), draw_layers(found))


def _numbers(flag: str, options: Mapping[str, str]) -> list[int]:
    """Those behind an option, in order and each once."""
    text = options.get(flag, _DEFAULTS[flag])
    words = text.split(",")
    if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
        raise UserError(f"{flag} takes whole numbers above 0, such as {flag} {_DEFAULTS[flag]}, not {text!r}")
    return sorted({int(word) for word in words})
