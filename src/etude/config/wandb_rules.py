"""Check `logger.wandb`: W&B itself refuses a name or tag only when the run begins, which would then go on unlogged."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.study.study import value_at

_ARTIFACTS = ("checkpoint", "hypotheses")
MAX_NAME, MAX_TAG = 128, 64  # characters that W&B allows


def make_tag(key: str, value: str) -> str:
    """Return the tag "key=value"; in place of what W&B would refuse as too long stands a hash of it all."""
    tag = f"{key}={value}"
    return tag if len(tag) <= MAX_TAG else f"{tag[: MAX_TAG - 9]}-{hashlib.sha256(tag.encode()).hexdigest()[:8]}"


def check_wandb(config: Mapping[str, Any]) -> None:
    """Check the project, entity, tags and artifacts of the W&B logger.

    Raises:
        UserError: W&B would not take one of them.
    """
    _check_place(value_at(config, "logger.wandb.project"), value_at(config, "logger.wandb.entity"))
    for tag in _list_at(config, "tags", "pilot"):
        if not isinstance(tag, str) or not 0 < len(tag) <= MAX_TAG:
            raise UserError(
                f"logger.wandb.tags: {tag!r} is not a tag of W&B, which is a text of 1 to {MAX_TAG} characters"
            )
    for artifact in _list_at(config, "artifacts", "checkpoint"):
        if artifact not in _ARTIFACTS:
            raise UserError(f"logger.wandb.artifacts: no {artifact!r}; {did_you_mean(str(artifact), _ARTIFACTS)}")


def _check_place(project: Any, entity: Any) -> None:
    """Check the names of the project and of the user or team that it belongs to."""
    way_out = "a team's is told by logger.wandb.entity=TEAM logger.wandb.project=NAME"
    for key, name in (("project", project), ("entity", entity)):
        if isinstance(name, str) and (wrong := re.search(r"[/\\#?%:]", name)):
            raise UserError(f"logger.wandb.{key}={name}: no {key} of W&B has {wrong[0]!r} in its name; {way_out}")
    if isinstance(project, str) and not 0 < len(project) <= MAX_NAME:
        raise UserError(
            f"logger.wandb.project={project}: the name of a project has 1 to {MAX_NAME} characters; "
            "leave it out, and the project is etude"
        )


def _list_at(config: Mapping[str, Any], key: str, example: str) -> Sequence[Any]:
    found = value_at(config, f"logger.wandb.{key}") or []
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise UserError(f"logger.wandb.{key} must be a list, such as [{example}], not {found!r}")
    return found
