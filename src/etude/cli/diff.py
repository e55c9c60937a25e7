"""`etude diff`: compare the configs of two runs, arms or lists of overrides."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from etude.cli.arguments import parse
from etude.config.difference import Difference, difference
from etude.errors import UserError
from etude.inspect.show.find_config import NamedConfig, find_config
from etude.paths import is_there
from etude.terminal import console, format_value

HELP = """usage: etude diff A B

Shows what B does differently from A. Each is a run (its directory, its hash
or study/arm/seed), an arm of a study, or overrides in quotes; "" is the default.

  etude diff table3/base table3/A1
  etude diff "" "model.heads=4 scale=small"
  etude diff runs/single/base/seed1-... "table3/A1 scale=small"
"""


def main(words: Sequence[str]) -> None:
    """Print the difference of two configs."""
    words = parse("diff", HELP, words).words
    if len(words) != 2:
        raise UserError(f'diff takes two configs, not {len(words)}; quote overrides: etude diff "" "model.heads=4"')
    before, after = (_side(word) for word in words)
    found = difference(before.config, after.config, (before.written, after.written))
    if not found:
        other = before.text and after.text and before.text != after.text
        what = ", but the runs are of different text" if other else ""
        sys.stdout.write(f"no difference: the two configs hold the same values{what}\n")
        return
    titles = [word or "the default" for word in words]
    console().print(_render_difference(titles, found, (_parameters(before), _parameters(after))))


def _side(word: str) -> NamedConfig:
    if word and is_there(Path(word.removeprefix("run="))):  # the path of a run may hold spaces
        return find_config([word])
    try:
        words = shlex.split(word)
    except ValueError as error:
        raise UserError(f"{word!r} cannot be read as overrides: {str(error).lower()}") from error
    return find_config(words)


def _parameters(side: NamedConfig) -> int | None:
    """Count the parameters; None if today's code can no longer build the model of a run."""
    from etude.inspect.show.anatomy import count_parameters  # imports torch, so only after both configs are found

    try:
        return count_parameters(side.of_model)
    except UserError:
        return None


def _render_difference(titles: Sequence[str], found: Difference, counts: tuple[int | None, int | None]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for title in titles:
        table.add_column(Text(title), overflow="fold")
    _section(table, "choices", found.choices)
    _section(table, "values", found.values)
    _section(table, "what follows from them", found.consequences, style="dim")
    one, other = counts
    change = f" ({other / one - 1:+.1%})" if one and other and one != other else ""
    first, second = ("?" if count is None else f"{count:,}" for count in counts)
    table.add_row("parameters", first, second + change)
    return table


def _section(table: Table, title: str, pairs: dict[str, tuple[Any, Any]], style: str = "") -> None:
    if pairs:
        table.add_row(Text(title, style="italic"))
    for key, pair in pairs.items():
        table.add_row(Text(f"  {key}"), *(Text(_format(value)) for value in pair), style=style)
    if pairs:
        table.add_row()


def _format(value: Any) -> str:
    return f"{len(value)} keys" if isinstance(value, dict) else format_value(value)
