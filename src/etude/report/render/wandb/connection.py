"""Connect to W&B's public API; errors become one sentence."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from etude.errors import UserError
from etude.wandb_service import end_service, ignore_empty_variables

if TYPE_CHECKING:
    from wandb import Api

_SECONDS = 5  # timeout of the API


class OutOfReachError(UserError):
    """W&B cannot be reached now: it is set to offline, there is no key, no network, or an outage."""


@contextmanager
def connect() -> Iterator["Api"]:
    """Open W&B's public API, and turn errors while it is used into one sentence.

    Raises:
        OutOfReachError: W&B cannot be reached or does not answer as expected.
    """
    ignore_empty_variables()
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
        if wandb.run is None:  # in a notebook it may be logging a run of the user's
            end_service()
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise OutOfReachError(f"{why} ({reason})") from error


def project_of(api: "Api", asked: str) -> tuple[str, str]:
    """Split [ENTITY/]PROJECT; the entity defaults to the user's own.

    Raises:
        UserError: `asked` has another form, or there is no default entity.
    """
    entity, slash, project = asked.rpartition("/")
    entity = entity if slash else api.default_entity or ""
    if not entity or not project or "/" in entity:
        raise UserError(f"{asked} names no project at W&B: say ENTITY/PROJECT, such as me/etude")
    return entity, project
