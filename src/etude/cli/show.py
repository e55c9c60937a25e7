"""`etude show`: show the model of a config with shapes and parameter counts, without training anything."""

import sys
from collections.abc import Sequence
from dataclasses import asdict

from etude.cli.arguments import parse
from etude.files import format_json
from etude.inspect.show.find_config import find_config
from etude.terminal import console

HELP = """usage: etude show [RUN | ARM] [key=value ...] [--json]

The composed model as a tree: what chose each part, the shapes of its weights,
and its parameters, with their share of the whole. Nothing is trained, and the
weights take no memory.

  etude show                                 the default model
  etude show model/position=learned          with a change
  etude show table3/A1 scale=full            an arm of a study
  etude show table3/A1/1                     the model of a run: study/arm/seed, hash or directory
  --json                                     print JSON
"""


def main(words: Sequence[str]) -> None:
    """Print the model of a config."""
    args = parse("show", HELP, words)
    named = find_config(args.words)
    config = named.of_model
    # These import torch, so only after the config is validated.
    from etude.inspect.show.anatomy import choices_by_module, describe_modules
    from etude.inspect.show.drawing import render_tree, sizes_of
    from etude.tasks import build

    root = describe_modules(build.shapes(config), choices_by_module(config))
    if "--json" in args.options:
        made = {"sizes": sizes_of(config), "choices": config["choices"], "model": asdict(root)}
        sys.stdout.write(format_json(made))
    else:
        terminal = console()
        terminal.print(render_tree(config, root, terminal.width, named.folders))
