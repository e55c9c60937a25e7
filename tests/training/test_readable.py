"""A checkpoint that could not be read is not written: the run would neither go on nor end."""

from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from etude.errors import UserError
from etude.tasks.claims import BrokenClaim
from etude.training.readable import check_readable
from etude.training.stopping import StopWhenAsked

PLAIN = {"best": 1.5, "at": (1, None), "names": ["a"], "sum": torch.ones(2), "own": OrderedDict(x={3: True}), "s": {1}}


def test_plain_values_are_read_again() -> None:
    check_readable(PLAIN, "state")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"best": np.float64(1.5)}, r"state\['best'\] is a numpy\.float64, with"),
        ([[Path("a")]], r"state\[0\]\[0\] is a pathlib\.\w+"),
        ({"f": lambda: 1}, r"state\['f'\] is a builtins\.function"),
        ({np.int64(1): 1}, r"state: the key .* is a numpy\.int64"),
    ],
)
def test_anything_else_is_named(state: Any, told: str) -> None:
    with pytest.raises(BrokenClaim, match=told):
        check_readable(state, "state")


def test_the_state_of_a_callback_is_checked_before_it_is_written() -> None:
    stop: Any = StopWhenAsked(SimpleNamespace(), val_every=1)  # type: ignore[arg-type]
    stop.on_save_checkpoint(None, None, {"callbacks": {"Mine": PLAIN}})
    with pytest.raises(
        UserError, match=r"the state of callbacks\['Mine'\]\['best'\] is a numpy\.float64.*keep numbers"
    ):
        stop.on_save_checkpoint(None, None, {"callbacks": {"Mine": {"best": np.float64(2)}}})
