"""What would fail after hours, or train to a score that means nothing, is refused before the first step."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.model.attention import MultiHeadAttention
from etude.model.cache import NO_CACHE, Cache, SelfAttentionCache
from etude.model.norm import LayerNorm
from etude.model.position import Position, Rotary
from etude.training.before import check_own_parts
from etude.training.optimizer import make_optimizer

TINY = ["model.d_model=16", "model.d_ff=24", "model.heads=4", "model.n_layers=2", "model.vocabulary=null"]


def checked(*overrides: str) -> None:
    check_own_parts(resolve(compose([*TINY, *overrides])), vocab_size=60)


def own(place: str, part: type[Any]) -> str:
    return f"{place}._target_={__name__}.{part.__qualname__}"


class Same(MultiHeadAttention):
    """Attention of one's own that is étude's."""


class Ahead(MultiHeadAttention):
    """Looks at every token, the later ones too."""

    def _restrict_mask(self, mask: Tensor, queries: Tensor, keys: Tensor, start: int) -> Tensor:
        return mask | True


class Unpadded(MultiHeadAttention):
    """Attends to the padding of the source."""

    def _restrict_mask(self, mask: Tensor, queries: Tensor, keys: Tensor, start: int) -> Tensor:
        return mask | True if self.is_cross else mask


class Infinite(LayerNorm):
    """A norm that divides by zero."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / (x - x)


class Turned(Rotary):
    """A position scheme of one's own that is étude's."""


class Mixed(SelfAttentionCache):
    """Keeps other rows than it is told to."""

    def reorder(self, rows: Tensor) -> None:
        if self._keys_values is not None:
            self._keys_values = self._keys_values[0][rows.flip(0)], self._keys_values[1][rows.flip(0)]


class Unsorted(MultiHeadAttention):
    """Attention whose cache does not follow its hypotheses."""

    def start(self) -> Any:
        return super().start() if self.is_cross else Mixed()


class Otherwise(MultiHeadAttention):
    """Does something else when it is asked token by token."""

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        later = cache.length > 0
        return super().forward(x, context, mask, position, cache) * (2 if later else 1)


class Noisy(LayerNorm):
    """A norm that draws numbers in evaluation, too; it cannot be held to any claim."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.randn_like(x)


class Rateless(torch.optim.Optimizer):
    """An optimizer whose groups have no learning rate."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})

    def step(self, closure: Any = None) -> Any:
        return closure()


class Descent(torch.optim.SGD):
    """An optimizer of one's own that is PyTorch's."""


class Deaf(torch.optim.SGD):
    """An optimizer that does not call its closure."""

    def step(self, closure: Any = None) -> Any:
        return super().step()


class Forgetful(torch.optim.SGD):
    """An optimizer that counts its steps in an attribute."""

    steps = 0

    def step(self, closure: Any = None) -> Any:
        self.steps += 1
        self.param_groups[0]["lr"] = 1 / self.steps
        return super().step(closure)


class Boxed(torch.optim.SGD):
    """An optimizer with a state that no checkpoint is read with."""

    def step(self, closure: Any = None) -> Any:
        self.state[self.param_groups[0]["params"][0]]["losses"] = np.float64(1)
        return super().step(closure)


class Torn(LayerNorm):
    """A norm with a mistake in it."""

    def forward(self, x: Tensor) -> Tensor:
        raise LookupError("what a\npity")


BROKEN = {
    Ahead: r"model.*Ahead.*: a later token of the target changes what comes before it \(a",
    Unpadded: r"what stands in the padding changes the answer",
    Otherwise: r"token by token, it answers otherwise than at once",
    Unsorted: r"its cache does not follow its hypotheses; `reorder` must keep the rows it is given",
    Infinite: r"model.*Infinite.*: some logits are not finite numbers; a weight that `reset_parameters` does not",
    Noisy: r"Noisy.*: it gives other numbers each time in evaluation mode",
}


@pytest.mark.parametrize(("part", "told"), BROKEN.items())
def test_what_breaks_a_claim_is_refused_with_the_way_out(part: type[Any], told: str) -> None:
    overrides = own("model.norm" if issubclass(part, LayerNorm) else "model.attention", part)
    with pytest.raises(UserError, match=told) as refused:
        checked(overrides)
    assert str(refused.value).endswith("; trainer.check_parts=false trains it all the same")
    checked(overrides, "trainer.check_parts=false")


def test_what_fails_is_told_with_class_and_line() -> None:
    told = r"model fails on a small batch in .*Torn \(.*py, line \d+\): LookupError: what a pity"
    with pytest.raises(UserError, match=told):
        checked(own("model.norm", Torn))


@pytest.mark.parametrize(
    "overrides", [own("model.attention", Same), f"model/position=rope {own('model.position', Turned)}"]
)
def test_what_keeps_the_claims_may_train(overrides: str) -> None:
    checked(*overrides.split())


def optimizer(part: type[torch.optim.Optimizer]) -> list[str]:
    return ["~optimizer", "+optimizer._partial_=true", f"+{own('optimizer', part)}"]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Deaf, r"optimizer.*Deaf.*: `step` must call its closure, which computes the gradients"),
        (Forgetful, r"optimizer.*Forgetful.*: after a checkpoint its next update is another one; what it remembers"),
        (Boxed, r"optimizer.*Boxed.*: its state\['state'\]\[0\]\['losses'\] is a numpy.float64, with which no check"),
    ],
)
def test_an_optimizer_that_could_not_go_on_is_refused(part: type[torch.optim.Optimizer], told: str) -> None:
    with pytest.raises(UserError, match=told):
        checked(*optimizer(part))
    checked(*optimizer(part), "trainer.check_parts=false")
    checked(*optimizer(Descent))


def test_an_optimizer_without_a_rate_is_refused_when_it_is_made() -> None:
    config = resolve(compose([*TINY, *optimizer(Rateless)]))
    with pytest.raises(UserError, match=r"optimizer: .*\.Rateless: its parameter groups need `lr`, which the schedule"):
        make_optimizer(config["optimizer"], [("weight", torch.nn.Parameter(torch.ones(2)))])


def test_the_generators_are_left_as_they_were() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    checked(own("model.attention", Same))
    assert torch.equal(torch.rand(3), expected)
