"""The arms of all studies, each by its name `<study>/<arm>`, as in `experiment=table3/A1`."""

from contextlib import suppress
from functools import cache
from pathlib import Path

from etude.errors import UserError
from etude.paths import folders_of
from etude.study.study import load_study, study_names


def arm_names() -> frozenset[str]:
    """List `<study>/<arm>` for every arm of every valid study; studies with errors are skipped."""
    return _arm_names(tuple(folders_of("experiments")))


@cache
def _arm_names(folders: tuple[Path, ...]) -> frozenset[str]:
    """List the names of all arms, cached by the `folders` of experiments, which depend on the working directory."""
    names: set[str] = set()
    for study in study_names():
        with suppress(UserError):
            names.update(f"{study}/{arm}" for arm in load_study(study).arms)
    return frozenset(names)


def is_arm(name: str) -> bool:
    """Return whether `name` is the `<study>/<arm>` of a valid study; no other study is read."""
    study, _, arm = name.partition("/")
    with suppress(UserError):
        return arm in load_study(study).arms
    return False
