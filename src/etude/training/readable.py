"""Find in a state what a checkpoint could not be read with: étude executes nothing in one, so it takes plain values."""

import io
from collections import OrderedDict
from typing import Any

import torch

from etude.tasks.claims import BrokenClaim

_PLAIN = {str, int, float, bool, type(None), torch.Tensor, torch.nn.Parameter}


def check_readable(state: Any, where: str) -> None:
    """Check that a checkpoint with this state could be read again.

    Args:
        state: a value, or containers of values.
        where: its name.

    Raises:
        BrokenClaim: it could not; the message names the first value in the way.
    """
    if type(state) in _PLAIN:
        return
    if type(state) in (dict, OrderedDict):
        for key, value in state.items():
            check_readable(key, f"{where}: the key {key!r}")
            check_readable(value, f"{where}[{key!r}]")
    elif type(state) in (list, tuple):
        for place, value in enumerate(state):
            check_readable(value, f"{where}[{place}]")
    elif not _is_read_again(state):
        kind = f"{type(state).__module__}.{type(state).__qualname__}"
        raise BrokenClaim(
            f"{where} is a {kind}, with which no checkpoint can be read: keep numbers, texts, tensors, and lists and "
            "dictionaries of them"
        )


def _is_read_again(value: Any) -> bool:
    file = io.BytesIO()
    try:
        torch.save(value, file)
        file.seek(0)
        torch.load(file, weights_only=True)
    except Exception:  # pickle may raise anything, and so may the value
        return False
    return True
