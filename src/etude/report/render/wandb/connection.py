"""W&B's public API, or one sentence on why it cannot be had."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from etude.errors import UserError
from etude.wandb_service import end_service

if TYPE_CHECKING:
    from wandb import Api

_SECONDS = 5  # that a server may take to say who we are


class OutOfReachError(UserError):
    """W&B cannot be asked now: it is set to be offline, there is no key, no network, or an outage."""


@contextmanager
def connect() -> Iterator["Api"]:
    """W&B's public API; what goes wrong while it is used is one sentence.

    Raises:
        OutOfReachError: it cannot be asked.
    """
    if (mode := os.environ.get("WANDB_MODE", "online")) != "online":
        raise OutOfReachError(f"WANDB_MODE={mode} keeps everything on this machine")
    from wandb.errors import AuthenticationError, CommError, UsageError
    from wandb.sdk.lib.service.service_connection import WandbApiFailedError

    import wandb

    try:
        yield wandb.Api(timeout=_SECONDS)
    except (AuthenticationError, UsageError, CommError, WandbApiFailedError, ValueError) as error:
        why = "W&B does not answer as it should"  # a ValueError is an answer that the client cannot read
        if isinstance(error, AuthenticationError):
            why = "W&B cannot be reached, or does not know the key"
        elif isinstance(error, UsageError):
            why = "W&B cannot be asked"
        end_service()
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise OutOfReachError(f"{why} ({reason})") from error


def project_of(api: "Api", asked: str) -> tuple[str, str]:
    """Entity and project, the entity being the person's own where none is named.

    Raises:
        UserError: there is no such entity to be had.
    """
    entity, slash, project = asked.rpartition("/")
    entity = entity if slash else api.default_entity or ""
    if not entity or not project or "/" in entity:
        raise UserError(f"--wandb {asked}: say ENTITY/PROJECT, such as me/etude")
    return entity, project
