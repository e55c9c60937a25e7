"""The claims about every part hold those in a user's folder to account."""

from pathlib import Path

import pytest
import torch

from etude.inspect.claims import check_claims, own_parts
from etude.model.attention import MultiHeadAttention
from etude.model.norm import LayerNorm


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


@pytest.mark.parametrize("part", ["model/norm=rms", "model/position=rope", "model/attention=linear"])
def test_etudes_own_parts_keep_them(part: str) -> None:
    check_claims(part)


def test_the_parts_of_a_folder_are_the_files_in_its_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("model/norm/mine.yaml", "model/decoder/alignment/mine.yaml", "data/mine.yaml"):
        (tmp_path / "conf" / file).parent.mkdir(parents=True)
        (tmp_path / "conf" / file).write_text("_target_: mine.Mine\n")
    assert set(own_parts()) == {"model/norm=mine", "model/decoder=recurrent model/decoder/alignment=mine"}
