"""Where the files lie that are not étude's code: `conf/`, `experiments/`, `sweeps/`, and the user's own modules."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

CONFIG_DIR = "ETUDE_CONFIG_DIR"  # what was typed behind -cd, for this process and those that it starts

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent


def shipped(name: str) -> Path:
    """The folder `name` as it ships with étude: beside the code in a wheel, at the top level in a checkout."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _CHECKOUT / name


def folders_of(name: str) -> list[Path]:
    """Every folder `name` that counts, the first first: for `conf` that of -cd, the user's, the shipped one."""
    ours, typed = shipped(name), os.environ.get(CONFIG_DIR) if name == "conf" else None
    own = [*([Path(typed)] if typed else []), Path.cwd() / name]
    return [*(folder for folder in own if folder.is_dir() and folder.resolve() != ours.resolve()), ours]


def find_file(name: str, file: str) -> Path:
    """The file in the first folder `name` that has it; where none has, its place in the shipped one."""
    folders = folders_of(name)
    return next((path for folder in folders if (path := folder / file).is_file()), folders[-1] / file)


def note_on_missing(name: str, file: str) -> str:
    """What to add to the sentence for a file that no folder `name` has: why one of the user's was not found."""
    unread = next((path for f in folders_of(name) if (path := (f / file).with_suffix(".yml")).is_file()), None)
    if unread:
        return f" ({unread} is not read: end its name in .yaml)"
    return "" if (Path.cwd() / name).is_dir() else f" ({Path.cwd()}, where you stand, has no folder {name})"


def import_from_here() -> None:
    """Make the modules of the working directory importable, behind all others: none of them shadows a library."""
    here = str(Path.cwd())
    sys.path[:] = [*(path for path in sys.path if path not in ("", here)), here]


def hidden_module(name: str) -> tuple[Path, str] | None:
    """The user's module of a top-level name, and what Python finds in its place; None where nothing is hidden."""
    here = Path.cwd()
    own = next((path for path in (here / f"{name}.py", here / name) if path.exists()), None)
    spec = find_spec(name) if own else None
    if own is None or spec is None or str(spec.origin or own).startswith(str(own)):
        return None
    return own, str(spec.origin)
