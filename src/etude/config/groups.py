"""The config groups that can be overridden, and what each can be set to."""

from etude.paths import folders_of
from etude.study.arm_names import arm_names


def group_names() -> list[str]:
    """Return every config group that can be overridden, sorted."""
    return sorted(
        {path.relative_to(root).as_posix() for root in folders_of("conf") for path in root.rglob("*") if path.is_dir()}
    )


def options(group: str) -> list[str]:
    """List the names that a config group can be set to."""
    if group == "experiment":
        return sorted(arm_names())
    return sorted({file.stem for folder in folders_of("conf") for file in (folder / group).glob("*.yaml")})
