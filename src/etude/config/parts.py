"""A part: the object that a config node names by its `_target_`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from etude.config.check import check_part
from etude.config.explain import explain, missing_target
from etude.errors import UserError

Config = dict[str, Any]


def make(node: Config, *positional: Any) -> Any:
    """The object that a config node names; a partial one is called with what only code knows.

    Raises:
        UserError: the class refuses its values, or the config is older than the code.
    """
    try:
        with of_today(lambda: check_part(node, node["_target_"])):
            made = instantiate(node, _convert_="all")
            return _called(made, node["_target_"], *positional) if node.get("_partial_") else made
    except (InstantiationException, ValueError) as error:
        cause = error if isinstance(error, ValueError) else error.__cause__
        if isinstance(cause, ValueError):
            raise UserError(f"{cause} ({node['_target_']})") from error
        raise explain(error) or error from error


def _called(part: Callable[..., Any], target: str, *positional: Any) -> Any:
    """What a partial part makes of what only code knows.

    Raises:
        UserError: it takes something else.
    """
    try:
        signature(part).bind(*positional)
    except TypeError as error:  # of the call, and not of what is called
        raise UserError(f"{target} cannot be called as a part of its kind is: {error}") from error
    except ValueError:  # of what is written in C nobody knows
        pass
    return part(*positional)


@contextmanager
def of_today(checking: Callable[[], None]) -> Iterator[None]:
    """Inside, what fails because the code has changed since a config was frozen is told by what `checking` raises.

    Raises:
        UserError: the config holds what today's code does not take, or lacks what it needs.
    """
    try:
        yield
    except (InstantiationException, KeyError, TypeError) as error:
        if not (missing_target(error) or "etude.").startswith("etude."):  # a class of the user's has gone
            raise explain(error) or error from error
        try:
            checking()
        except UserError as reason:
            raise UserError(
                f"the config of this run is of other code than today's ({reason}): launch it again, or go back to the "
                "code that began it"
            ) from error
        raise
