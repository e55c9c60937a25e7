"""Find files other than étude's code: `conf/`, `experiments/`, `sweeps/`, and the user's own modules."""

import os
import sys
from pathlib import Path

from etude.errors import UserError

CONFIG_DIR = "ETUDE_CONFIG_DIR"  # the value of the option -cd, for this process and its children

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent


def shipped(name: str) -> Path:
    """Return the folder `name` that ships with étude: beside the code in a wheel, at the top level in a checkout."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _CHECKOUT / name


def folders_of(name: str) -> list[Path]:
    """Return every folder `name` by precedence: for `conf` that of -cd, then the working directory's, then étude's."""
    ours, typed = shipped(name), os.environ.get(CONFIG_DIR) if name == "conf" else None
    own = [*([Path(typed)] if typed else []), Path.cwd() / name]
    return [*(folder for folder in own if folder.is_dir() and folder.resolve() != ours.resolve()), ours]


def find_file(name: str, file: str) -> Path:
    """Return the file in the first folder `name` that has it; if none has, its path in the shipped folder."""
    folders = folders_of(name)
    return next((path for folder in folders if (path := folder / file).is_file()), folders[-1] / file)


def refuse_study_file(name: str) -> None:
    """Raise if a study.yaml is named in place of its study, as the tab key completes it."""
    file = Path(name).absolute()
    if file.match("experiments/*/study.yaml"):
        raise UserError(f"{name} is the file of a study, which is named by its folder: {file.parent.name}")


def note_on_missing(name: str, file: str) -> str:
    """Return an addition to the error for a file that no folder `name` has: why a file of the user's is not found."""
    unread = next((path for f in folders_of(name) if (path := (f / file).with_suffix(".yml")).is_file()), None)
    if unread:
        return f" ({unread} is not read: end its name in .yaml)"
    return "" if (Path.cwd() / name).is_dir() else f" ({Path.cwd()}, where you stand, has no folder {name})"


def import_from_here() -> None:
    """Put the working directory at the end of `sys.path`, so that its modules can be imported but shadow no library."""
    here = str(Path.cwd())
    sys.path[:] = [*(path for path in sys.path if path not in ("", here)), here]


def is_there(path: Path) -> bool:
    """Return whether a file or folder exists; False if the name is too long to be one."""
    try:
        return path.exists()
    except OSError:
        return False
