"""The arms of all studies, each by its name `<study>/<arm>`, as in `experiment=table3/A1`.

Several joined by a plus are one configuration with the overrides of all: `experiment=[table3/A1,modern/rope]` is
`experiment=table3/A1+modern/rope`. It belongs to no study.
"""

from contextlib import suppress
from functools import cache
from pathlib import Path

from etude.errors import UserError
from etude.paths import folders_of
from etude.study.arms import override_key
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
    """Return whether `name` is the `<study>/<arm>` of a valid study, or several; no other study is read."""
    found = []
    for one in name.split("+"):
        study, _, arm = one.partition("/")
        with suppress(UserError):
            found.append(arm in load_study(study).arms)
    return len(found) == name.count("+") + 1 and all(found)


def find_arm(name: str) -> tuple[str, str, list[str]]:
    """Return the study, the arm and the overrides of the name of an arm, or of several.

    Raises:
        UserError: two of several set a key to different values.
    """
    given: dict[str, tuple[str, str]] = {}  # key -> the arm that sets it, and the override
    several = [one.partition("/") for one in name.split("+")]
    for study, _, arm in several:
        for override in load_study(study).arms[arm]:
            key, one = override_key(override), f"{study}/{arm}"
            first, other = given.setdefault(key, (one, override))
            if other != override:
                raise UserError(
                    f"experiment={name}: {first} has {other} and {one} has {override}: leave one of them out"
                )
    study, arm = (
        (several[0][0], several[0][2]) if len(several) == 1 else ("single", "-".join(arm for *_, arm in several))
    )
    return study, arm, [override for _, override in given.values()]
