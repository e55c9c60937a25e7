"""A part: the object that a config node names by its `_target_`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from etude.config.check import check_part
from etude.config.explain import explain, missing_target
from etude.config.signature import signature as config_signature
from etude.errors import UserError

Config = dict[str, Any]


def make(node: Config, *positional: Any, **given: Any) -> Any:
    """The object that a config node names; a partial one is called with what only code knows.

    Args:
        node: with its `_target_`.
        positional: for a partial one.
        given: for any other, by the names of parameters: it gets those which it takes and the node leaves open.

    Raises:
        UserError: the class refuses its values, or the config is older than the code.
    """
    with _explain_failures(node, tuple(given)):
        if not node.get("_partial_"):
            takes = config_signature(node["_target_"]).keywords
            left_open = {name: value for name, value in given.items() if name in takes and node.get(name) is None}
            return instantiate(node | {"_partial_": True}, _convert_="all")(**left_open)
        part = instantiate(node, _convert_="all")
        _bind(part, node["_target_"], *positional)
        return part(*positional)


def try_out(node: Config, *positional: Any) -> None:
    """As `make`, but a partial part is not called: anything may stand for what only code knows.

    Raises:
        UserError: as there.
    """
    with _explain_failures(node):
        part = instantiate(node, _convert_="all")
        if node.get("_partial_"):
            _bind(part, node["_target_"], *positional)


@contextmanager
def _explain_failures(node: Config, given: tuple[str, ...] = ()) -> Iterator[None]:
    """Inside, what fails because of a node's values is one sentence.

    Raises:
        UserError: as `make`.
    """
    try:
        with of_today(lambda: check_part(node, node["_target_"], given)):
            yield
    except (InstantiationException, ValueError) as error:
        cause = error if isinstance(error, ValueError) else error.__cause__
        if isinstance(cause, ValueError):
            raise UserError(f"{cause} ({node['_target_']})") from error
        raise explain(error) or error from error
    except (TypeError, LookupError) as error:
        if not node["_target_"].startswith("torch."):  # it may be a mistake in the class
            raise
        raise UserError(f"{node['_target_']} cannot take its values: {error}") from error


def _bind(part: Callable[..., Any], target: str, *positional: Any) -> None:
    """See to it that a partial part can be called with what only code knows.

    Raises:
        UserError: it takes something else, or more.
    """
    try:
        signature(part).bind(*positional)
    except TypeError as error:  # of the call, and not of what is called
        raise UserError(f"{target} cannot be called as a part of its kind is: {error}") from error
    except ValueError:  # of what is written in C nobody knows
        pass


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
