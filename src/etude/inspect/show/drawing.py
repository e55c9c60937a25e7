"""How the model of a config looks in a terminal."""

from collections.abc import Iterator, Sequence
from importlib.resources.abc import Traversable

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from etude.inspect.show.anatomy import Node
from etude.inspect.show.named import Config
from etude.studies.axes import gloss
from etude.studies.study import value_at
from etude.terminal import format_value

_HYDRAS = ("_target_", "_partial_")
_ROOM = 110  # columns from which on the tree repeats who chose what


def render_tree(config: Config, root: Node, width: int, folders: Sequence[Traversable] = ()) -> Group:
    """The sizes, the choices and the tree of a model, in `width` columns; `folders` hold the files that were chosen."""
    head = Text(f"{root.kind}: {root.parameters:,} parameters", style="bold")
    sizes = Text("   ".join(f"{key} {format_value(value)}" for key, value in sizes_of(config).items()))
    return Group(head, Padding(sizes, (1, 0)), _choices(config, folders), Text(), _tree(root, choices=width >= _ROOM))


def sizes_of(config: Config) -> dict[str, object]:
    """The plain values of the model; one that is left open is shown as what it becomes."""
    model = config["model"]
    becomes = model["attention"] | {"vocabulary": config["tokenizer"]["vocab_size"]}
    parts = {group.rpartition("/")[2] for group in config["choices"]}  # of which one may be absent
    plain = {key: value for key, value in model.items() if not isinstance(value, dict) and key not in parts}
    return {key: becomes.get(key) if value is None else value for key, value in plain.items()}


def _choices(config: Config, folders: Sequence[Traversable]) -> Table:
    """What was chosen on each axis of the model: its class, its own values, and what its file says of it."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="cyan")
    table.add_column()
    for group, value in config["choices"].items():
        if group.partition("/")[0] == "model" and value is not None:
            table.add_row(
                f"{group}={value}", Text(" ".join(filter(None, [gloss(group, value, folders), _own(config, group)])))
            )
    return table


def _own(config: Config, group: str) -> str:
    """The values of a part that are no size of the model."""
    part, sizes = value_at(config, group.replace("/", ".")) or {}, sizes_of(config)
    values = {key: value for key, value in part.items() if key not in _HYDRAS and not isinstance(value, dict)}
    own = [f"{key}={format_value(value)}" for key, value in values.items() if sizes.get(key) != value]
    return f"({', '.join(own)})" if own else ""


def _tree(root: Node, choices: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("module", no_wrap=True)
    if choices:
        table.add_column("chosen by", no_wrap=True, style="cyan")
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
    """Each node with the lines that lead to it, and how many of it there are in the whole model."""
    times *= node.times
    yield guide, node, times
    for number, child in enumerate(node.children, start=1):
        last = number == len(node.children)
        here, further = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _lines(child, times, below + here, below + further)
