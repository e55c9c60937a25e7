"""A part that cannot be made is one sentence, with its class."""

from abc import ABC, abstractmethod
from traceback import format_exception

import pytest
from hydra.errors import InstantiationException
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


class Failing:
    """A class of the user's that fails for a reason of its own."""

    def __init__(self) -> None:
        raise RuntimeError("no such device")


class Holder:
    """A class of the user's that is given a part."""

    def __init__(self, part: object) -> None:
        self.part = part


def test_a_class_that_lacks_a_method_is_told_with_the_method() -> None:
    with pytest.raises(UserError, match=r"\.Unfinished cannot be made: .* abstract .*pairs"):
        make({"_target_": f"{__name__}.Unfinished"})


@pytest.mark.parametrize("compiled", [False, True])
def test_a_module_that_cannot_take_what_it_is_given_is_told(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled:  # once something has been, torch.compile has wrapped the constructor of all modules
        wrapped = nn.Module.__init__
        monkeypatch.setattr(nn.Module, "__init__", lambda self, *args, **given: wrapped(self, *args, **given))
    with pytest.raises(
        UserError, match=r"\.Bare cannot be called with what the code gives .* has no __init__ of its own"
    ):
        make({"_target_": f"{__name__}.Bare", "_partial_": True}, 0)


def test_a_bug_in_a_class_keeps_its_traceback() -> None:
    with pytest.raises(TypeError, match="has no len"):
        make({"_target_": f"{__name__}.Mistaken"})


def test_a_part_of_a_part_that_fails_keeps_its_cause_with_file_and_line() -> None:
    with pytest.raises(InstantiationException) as caught:
        make({"_target_": f"{__name__}.Holder", "part": {"_target_": f"{__name__}.Failing"}})
    assert str(caught.value.__cause__) == "no such device"
    assert f'File "{__file__}", line' in "".join(format_exception(caught.value))
