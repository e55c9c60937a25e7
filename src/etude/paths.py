"""Where the files that are not code live: `conf/`, `experiments/` and `sweeps/`."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent


def shipped(name: str) -> Path:
    """The folder `name` as it ships with étude: beside the code in a wheel, at the top level in a checkout."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _CHECKOUT / name


def found(name: str) -> list[Path]:
    """Every folder `name` that counts: the one where the user stands first, then the shipped one."""
    here, ours = Path.cwd() / name, shipped(name)
    return [here, ours] if here.is_dir() and here.resolve() != ours.resolve() else [ours]
