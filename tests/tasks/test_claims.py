"""The claims about every part hold those in a user's folder to account."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from etude.model.attention import MultiHeadAttention
from etude.model.norm import LayerNorm
from etude.tasks.claims import BrokenClaim, check_claims, check_readable, own_parts


class Ahead(MultiHeadAttention):
    """Looks at every token, the later ones too."""

    def _restrict_mask(self, mask, queries, keys, start):  # type: ignore[no-untyped-def]
        return mask | True


class OverTime(LayerNorm):
    """Takes off the mean over positions."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        return super().forward(x) - x.mean(dim=1, keepdim=True)


class Doubled(LayerNorm):
    """Gives numbers in double precision, whatever it is given."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        return super().forward(x).double()


class Noisy(LayerNorm):
    """Draws numbers in evaluation mode, too."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        return super().forward(x) + torch.randn_like(x)


def test_a_part_that_works_in_double_precision_alone_is_found() -> None:
    with pytest.raises(RuntimeError, match="dtype"):
        check_claims(f"model.norm._target_={__name__}.Doubled")


def test_a_part_that_draws_numbers_is_not_blamed_for_looking_ahead() -> None:
    with pytest.raises(AssertionError, match="it gives other numbers each time in evaluation mode"):
        check_claims(f"model.norm._target_={__name__}.Noisy")


@pytest.mark.parametrize("target", ["attention", "norm"])
def test_a_part_that_looks_ahead_is_found(target: str) -> None:
    own = {"attention": "Ahead", "norm": "OverTime"}[target]
    with pytest.raises(AssertionError, match="a later token of the target changes what comes before it"):
        check_claims(f"model.{target}._target_={__name__}.{own}")


def test_the_parts_of_a_folder_are_the_files_in_its_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("model/norm/mine.yaml", "model/decoder/alignment/mine.yaml", "data/mine.yaml"):
        (tmp_path / "conf" / file).parent.mkdir(parents=True)
        (tmp_path / "conf" / file).write_text("_target_: mine.Mine\n")
    assert set(own_parts()) == {"model/norm=mine", "model/decoder=recurrent model/decoder/alignment=mine"}


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
def test_anything_else_that_no_checkpoint_can_be_read_with_is_named(state: Any, told: str) -> None:
    with pytest.raises(BrokenClaim, match=told):
        check_readable(state, "state")
