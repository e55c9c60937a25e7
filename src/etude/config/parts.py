"""Make a part: the object that a config node names by its `_target_`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from etude.config.check import check_part
from etude.config.explain import explained, missing_target
from etude.config.signature import signature as config_signature
from etude.errors import UserError, did_you_mean

Config = dict[str, Any]

_TAKES_NOTHING = ("torch.nn.modules.module", "Module")  # whose constructor's signature promises to take anything


def make(node: Config, *positional: Any, **given: Any) -> Any:
    """Make the object that a config node names by its `_target_`.

    Args:
        node: the config of the part.
        positional: arguments for a node with `_partial_: true`, which is called with them.
        given: arguments by name for any other node: it gets those that its class accepts and the node does not set.

    Raises:
        UserError: the class rejects its values, or the config is older than the code.
    """
    with _explain_failures(node, tuple(given)):
        if not node.get("_partial_"):
            takes = config_signature(node["_target_"]).keywords
            left_open = {name: value for name, value in given.items() if name in takes and node.get(name) is None}
            return instantiate(node | {"_partial_": True}, _convert_="all")(**left_open)
        part = instantiate(node, _convert_="all")
        _bind(part, node["_target_"], *positional)
        return part(*positional)


def override(node: Config, given: Mapping[str, Any], what: str) -> Config:
    """Return the config of a part with other options; or `given` itself if it names a class by `_target_`.

    Args:
        node: the config of the part.
        given: its options that are to be others.
        what: what the part is called in a message.

    Raises:
        UserError: the part has no such option, or it is of another type.
    """
    if "_target_" in given:
        return dict(given)
    known = config_signature(node["_target_"]).keywords.keys()
    if unknown := given.keys() - known:
        raise UserError(f"the {what} has no option {min(unknown)!r}; {did_you_mean(min(unknown), known)}")
    plain = {name: _plain(value) for name, value in given.items()}
    check_part({"_target_": node["_target_"], **plain}, what, tuple(known))  # what stands in the node was checked
    return {**node, **{name: value if isinstance(plain[name], list) else plain[name] for name, value in given.items()}}


def _plain(value: Any) -> Any:
    """Return a number or an array of NumPy, or of what is like it, and a tuple as a config would hold them."""
    return [*value] if isinstance(value, tuple) else value.tolist() if hasattr(value, "tolist") else value


def try_out(node: Config, *positional: Any) -> None:
    """Check that `make` would succeed, without calling a partial part: any objects may be passed as `positional`.

    Raises:
        UserError: as `make`.
    """
    with _explain_failures(node):
        part = instantiate(node, _convert_="all")
        if node.get("_partial_"):
            _bind(part, node["_target_"], *positional)


@contextmanager
def _explain_failures(node: Config, given: tuple[str, ...] = ()) -> Iterator[None]:
    """Turn errors due to the values of a node into a UserError, within the context.

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
        with explained(Exception):
            raise
    except (TypeError, LookupError) as error:
        if not node["_target_"].startswith("torch.") and "abstract class" not in str(error):  # it may be a bug in it
            raise
        raise UserError(f"{node['_target_']} cannot be made: {error}") from error


def _bind(part: Callable[..., Any], target: str, *positional: Any) -> None:
    """Check that a partial part can be called with the arguments that the code gives.

    Raises:
        UserError: its parameters are different.
    """
    # The class is compared: torch.compile puts another function in the place of its constructor.
    kinds = getattr(getattr(part, "func", part), "__mro__", ())
    owner = next((kind for kind in kinds if "__init__" in vars(kind)), None)
    try:
        if owner and (owner.__module__, owner.__qualname__) == _TAKES_NOTHING:
            raise TypeError("it has no __init__ of its own that takes it: write one")
        signature(part).bind(*positional)
    except TypeError as error:  # the arguments do not fit; the part itself is not called here
        raise UserError(f"{target} cannot be called with what the code gives to a part of its kind: {error}") from error
    except ValueError:  # written in C, without a signature
        pass


@contextmanager
def of_today(checking: Callable[[], None]) -> Iterator[None]:
    """Explain errors of a config that was frozen by older code by what `checking` raises, within the context.

    Raises:
        UserError: the config has keys that today's code does not accept, or lacks keys that it needs.
    """
    try:
        yield
    except (InstantiationException, KeyError, TypeError) as error:
        if not (missing_target(error) or "etude.").startswith("etude."):  # a class of the user's is gone
            with explained(Exception):
                raise
        try:
            checking()
        except UserError as reason:
            raise UserError(
                f"the config of this run was written by another version of the code ({reason}): launch it "
                "again, or go back to the code that began it"
            ) from error
        raise
