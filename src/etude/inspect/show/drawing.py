"""Render the model of a config for the terminal."""

from collections.abc import Iterator, Sequence
from importlib.resources.abc import Traversable

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from etude.inspect.show.anatomy import Node
from etude.inspect.show.find_config import Config
from etude.study.axes import gloss
from etude.study.study import value_at
from etude.terminal import format_value

_HYDRA_KEYS = ("_target_", "_partial_")
_WIDE = 110  # terminal columns from which on the tree has a "chosen by" column


def render_tree(config: Config, root: Node, width: int, folders: Sequence[Traversable] = ()) -> Group:
    """Render the sizes, the choices and the module tree of a model.

    Args:
        config: the config.
        root: the module tree.
        width: terminal columns.
        folders: the config folders, whose files describe the choices.
    """
    # Of a text with fewer characters or words than `tokenizer.vocab_size`, fewer subwords are learned.
    at_most = value_at(config, "model.vocabulary") is None and value_at(config, "tokenizer.hard_vocab_limit") is False
    head = Text(f"{root.kind}: {root.parameters:,} parameters{' at most' * at_most}", style="bold")
    bounds = {"vocabulary": "≤"} if at_most else {}
    sizes = Text(
        "   ".join(f"{key} {bounds.get(key, '')}{format_value(value)}" for key, value in sizes_of(config).items())
    )
    return Group(head, Padding(sizes, (1, 0)), _choices(config, folders), Text(), _tree(root, choices=width >= _WIDE))


def sizes_of(config: Config) -> dict[str, object]:
    """Return the plain values of the model; a null is replaced by the value that it stands for."""
    model = config["model"]
    defaults = model["attention"] | {"vocabulary": config["tokenizer"]["vocab_size"]}
    parts = {*_HYDRA_KEYS, *(group.rpartition("/")[2] for group in config["choices"])}  # a part may be null, is no size
    plain = {key: value for key, value in model.items() if not isinstance(value, dict) and key not in parts}
    return {key: defaults.get(key) if value is None else value for key, value in plain.items()}


def _choices(config: Config, folders: Sequence[Traversable]) -> Table:
    """Render a table of the choices on each axis of the model, with the gloss of its file and its own values."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="cyan")
    table.add_column()
    for group, value in config["choices"].items():
        if group.partition("/")[0] == "model" and value is not None:
            table.add_row(
                f"{group}={value}",
                Text(" ".join(filter(None, [gloss(group, value, folders), _format_options(config, group)]))),
            )
    return table


def _format_options(config: Config, group: str) -> str:
    """Format the values of a part, without those that are sizes of the model."""
    part, sizes = value_at(config, group.replace("/", ".")) or {}, sizes_of(config)
    values = {key: value for key, value in part.items() if key not in _HYDRA_KEYS and not isinstance(value, dict)}
    options = [f"{key}={format_value(value)}" for key, value in values.items() if sizes.get(key) != value]
    return f"({', '.join(options)})" if options else ""


def _tree(root: Node, choices: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("module", no_wrap=True)
    if choices:
        table.add_column("chosen by", overflow="fold", style="cyan")
    table.add_column("weights", overflow="fold")
    table.add_column("parameters", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    for guide, node, times in _lines(root):
        kind = f"{node.times} × {node.kind}" if node.times > 1 else node.kind
        module = Text.assemble((guide, "dim"), node.name and f"{node.name}  ", (kind, "bold"))
        weights, count = " + ".join(node.weights), node.parameters * times
        weights = f"{times} × ({weights})" if weights and count and times > 1 else weights
        numbers = (f"{count:,}", f"{count / root.parameters:.1%}") if count else ("", "")
        table.add_row(module, *[node.choice] * choices, weights, *numbers)
    return table


def _lines(node: Node, times: int = 1, guide: str = "", below: str = "") -> Iterator[tuple[str, Node, int]]:
    """Yield each node with the guide lines before it, and how often it occurs in the whole model."""
    times *= node.times
    yield guide, node, times
    for number, child in enumerate(node.children, start=1):
        last = number == len(node.children)
        here, further = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _lines(child, times, below + here, below + further)
