"""Compare two configs: the group choices, the values that were written, and the values derived from those."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from etude.store.identity import canonical

Pair = tuple[Any, Any]  # before and after
Config = Mapping[str, Any]

_NAMES = ("study", "arm", "choices.experiment")  # keys that only name a run
_REFERENCE = re.compile(r"\$\{[\w.]+\}")


class _Absent:
    """Marks a key that a config does not have."""

    def __repr__(self) -> str:
        return "–"


ABSENT = _Absent()


@dataclass(frozen=True)
class Difference:
    """The changes from one config to another; keys are dotted, in the order of the configs."""

    choices: dict[str, Pair]  # config group -> the chosen options
    values: dict[str, Pair]  # written differently
    consequences: dict[str, Pair]  # written the same, but computed from something that differs

    def __bool__(self) -> bool:
        """Return whether there is any difference."""
        return bool(self.choices or self.values or self.consequences)


def difference(before: Config, after: Config, written: tuple[Config, Config] = ({}, {})) -> Difference:
    """Compute the changes from `before` to `after`.

    Args:
        before: a resolved config, with its group choices in `choices`.
        after: another one.
        written: both configs with their interpolations unresolved; a value missing there counts as written.

    Returns:
        The difference, without the names of the runs, the classes that belong to a changed choice, and plain copies of
        other keys (`${model.d_model}`).
    """
    changes = [c for c in _changes((before, after, *written)) if c.key not in _NAMES]
    choices = {c.key.removeprefix("choices."): c.pair for c in changes if c.key.startswith("choices.")}
    prefixes = tuple(f"{group.replace('/', '.')}._" for group in choices)  # model.position._target_
    keys = [c for c in changes if not c.key.startswith(("choices.", *prefixes))]
    return Difference(
        choices,
        values={c.key: c.pair for c in keys if not c.follows},
        consequences={c.key: c.pair for c in keys if c.follows and not _REFERENCE.fullmatch(str(c.written))},
    )


@dataclass(frozen=True)
class _Change:
    key: str
    pair: Pair
    written: Any
    follows: bool


def _changes(sides: tuple[Any, Any, Any, Any], path: str = "") -> Iterator[_Change]:
    """Yield every leaf that differs; a part that only one side has by its leaves, any other such section as a whole."""
    is_part = any(isinstance(side, Mapping) and "_partial_" in side for side in sides[:2])  # that a group chose
    before, after, written_before, written_after = ({} if is_part and side is ABSENT else side for side in sides)
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if canonical(before) != canonical(after):
            follows = written_before is not ABSENT and canonical(written_before) == canonical(written_after)
            yield _Change(path, (before, after), written_before, follows)
        return
    for key in [*before, *(key for key in after if key not in before)]:
        below = tuple(side.get(key, ABSENT) if isinstance(side, Mapping) else ABSENT for side in sides)
        yield from _changes(below, f"{path}.{key}" if path else str(key))  # type: ignore[arg-type]
