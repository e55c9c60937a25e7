"""A part that cannot be made is one sentence, with its class."""

from abc import ABC, abstractmethod

import pytest
from torch import nn

from etude.config.parts import make
from etude.errors import UserError


class Unfinished(ABC):
    """A class of the user's that lacks a method."""

    @abstractmethod
    def pairs(self) -> None:
        """What each corpus has."""


class Bare(nn.Module):
    """A module of the user's without a constructor."""


class Mistaken:
    """A class of the user's with a bug in it."""

    def __init__(self) -> None:
        len(3)  # type: ignore[arg-type]


def test_a_class_that_lacks_a_method_is_told_with_the_method() -> None:
    with pytest.raises(UserError, match=r"\.Unfinished cannot be made: .* abstract .*pairs"):
        make({"_target_": f"{__name__}.Unfinished"})


def test_a_module_that_cannot_take_what_it_is_given_is_told() -> None:
    with pytest.raises(
        UserError, match=r"\.Bare cannot be called with what the code gives .* has no __init__ of its own"
    ):
        make({"_target_": f"{__name__}.Bare", "_partial_": True}, 0)


def test_a_bug_in_a_class_keeps_its_traceback() -> None:
    with pytest.raises(TypeError, match="has no len"):
        make({"_target_": f"{__name__}.Mistaken"})
