"""What would fail after hours, or train to a score that means nothing, is refused before the first step."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.conftest import company
from tests.variations import variations
from torch import Tensor

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.decoding.beam import BeamSearch, Hypothesis
from etude.errors import UserError
from etude.model.attention import MultiHeadAttention
from etude.model.cache import NO_CACHE, Cache, SelfAttentionCache
from etude.model.feedforward import ReluFeedForward
from etude.model.norm import LayerNorm
from etude.model.position import Position, Rotary
from etude.training.loss import LabelSmoothing
from etude.training.rehearsal import rehearse

TINY = ["model.d_model=16", "model.d_ff=24", "model.heads=4", "model.n_layers=2", "model.vocabulary=null"]


def rehearsed(*overrides: str) -> None:
    rehearse(resolve(compose([*TINY, *overrides])), vocab_size=60)


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


class Narrow(ReluFeedForward):
    """Gives one number for each position, which a residual connection adds to all of its D."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).mean(-1, keepdim=True)


class Paired(ReluFeedForward):
    """Gives a second thing beside its output."""

    def forward(self, x: Tensor) -> Any:
        return super().forward(x), None


class FromZero(ReluFeedForward):
    """Means to begin at zero."""

    def reset_parameters(self) -> None:
        torch.nn.init.zeros_(self.outer.weight)


class Unfilled(LayerNorm):
    """A norm with a weight that holds whatever was in memory."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.gate = torch.nn.Parameter(torch.empty(1))


class Infinite(LayerNorm):
    """A norm that divides by zero."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / (x - x)


class Misspelt(Position):
    """A position scheme whose method has another name than its base's."""

    def scores_bias(self, queries: Tensor, length: int, start: int) -> Tensor | None:
        raise AssertionError("nothing calls it")


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


class Unsortable(MultiHeadAttention):
    """Attention whose cache cannot be reordered."""

    def start(self) -> Any:
        cache = super().start()
        cache.reorder = None  # type: ignore[method-assign, assignment]
        return cache


class Otherwise(MultiHeadAttention):
    """Does something else when it is asked token by token."""

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        later = cache.length > 0
        return super().forward(x, context, mask, position, cache) * (2 if later else 1)


class Noisy(LayerNorm):
    """A norm that draws numbers in evaluation, too; it cannot be held to any claim."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.randn_like(x)


class Unused(LayerNorm):
    """A norm with a weight that it does nothing with."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.spare = torch.nn.Parameter(torch.ones(1))


class Growing(Position):
    """A position scheme whose table grows with the text, and stands in the checkpoint."""

    def __init__(self, causal: bool, **options: Any) -> None:
        super().__init__(causal)
        self.register_buffer("table", torch.zeros(0))

    def add_to_embedding(self, x: Tensor, start: int) -> Tensor:
        if len(self.table) < start + x.shape[1]:
            self.table = torch.arange(start + x.shape[1]) / 10
        return x + self.table[start : start + x.shape[1], None]


class Extra(LayerNorm):
    """A norm with a state that no checkpoint is read with."""

    def get_extra_state(self) -> Any:
        return np.float64(1)

    def set_extra_state(self, state: Any) -> None:
        raise AssertionError("nobody reads it")


class Drawn(LayerNorm):
    """A norm with random numbers that no checkpoint holds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.factor = torch.rand(())

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.factor


class Plain(LabelSmoothing):
    """A loss that is a number and no tensor."""

    def __call__(self, logits: Tensor, targets: Tensor) -> Any:
        return super().__call__(logits, targets).item()


class Named(LabelSmoothing):
    """A loss in a dictionary."""

    def __call__(self, logits: Tensor, targets: Tensor) -> Any:
        return {"loss": super().__call__(logits, targets)}


class Each(LabelSmoothing):
    """A loss for each token."""

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        return super().__call__(logits, targets) * torch.ones_like(targets)


class Detached(LabelSmoothing):
    """A loss without a gradient."""

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        return super().__call__(logits, targets).detach()


class Mean(LabelSmoothing):
    """A loss divided by the number of tokens."""

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        return super().__call__(logits, targets) / targets.numel()


class OverSentences(LabelSmoothing):
    """A loss divided by the number of sentences."""

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        return super().__call__(logits, targets) / len(targets)


class BelowZero(LabelSmoothing):
    """A loss less than zero: with a constant for each token."""

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        return super().__call__(logits, targets) - 10 * (targets != self.pad).sum()


class WithPadding:
    """A loss that counts padding."""

    def __init__(self, pad: int) -> None:
        pass

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


class Torn(LabelSmoothing):
    """A loss with a mistake in it."""

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        raise RuntimeError("what a\npity")


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


class Counting:
    """A schedule that counts how often it is asked."""

    asked = 0

    def __call__(self, step: int) -> float:
        self.asked += 1
        return 0.001 / self.asked


class Backwards(BeamSearch):
    """A search that fails."""

    def __call__(self, model: Any, source: Tensor, source_mask: Tensor) -> list[list[Hypothesis]]:
        raise LookupError("nothing found")


BROKEN = {
    f"model/position=none {own('model.position', Misspelt)}": r"Misspelt overrides none of add_to_embedding, .*: is",
    own(
        "model.feedforward", Paired
    ): r"Paired returns a tuple; it must return a tensor of the shape of its input, \(2, 9",
    own(
        "model.attention", Ahead
    ): r"model with .*Ahead.*: a later token of the target changes what comes before it \(a",
    own("model.attention", Unpadded): r"what stands in the padding changes the answer",
    own("model.attention", Otherwise): r"token by token, it answers otherwise than at once",
    own("model.attention", Unsorted): r"search.*: a translation has log-probability -\d+\.\d+ in the search and -",
    own(
        "model.feedforward", Narrow
    ): r"Narrow returns \(2, 9, 1\) for an input of \(2, 9, 16\); it must keep the shape",
    own(
        "loss", Mean
    ): r"loss.*Mean.*: \d\.\d+ for four tokens and \d\.\d+ for the same tokens twice; it must be a sum, for",
    own("loss", Plain): r"loss.*Plain.*: \d+\.\d+ is no tensor; return one of no dimensions, computed from the logits",
    own("loss", Named): r"loss.*Named.*: \{'loss': tensor\(.*\)\} is no tensor",
    own("loss", Each): r"loss.*Each.*: a tensor \(1, 4\) has dimensions; return its sum over the real tokens",
    own("loss", Detached): r"loss.*Detached.*: tensor\(.*\) has no gradient; compute it from the logits",
    own("loss", OverSentences): r"for four tokens and .* for the same tokens twice",
    f"~loss.smoothing {own('loss', WithPadding)}": r"for four tokens and .* for the same with padding; leave out",
    own(
        "model.norm", Unfilled
    ): r"model with .*Unfilled.*: nothing fills the weight .*\.gate: do so in `reset_parameters`",
    own(
        "model.norm", Infinite
    ): r"model with .*Infinite.*: some logits are no finite numbers; a weight that `reset_par",
}
BROKEN |= {
    f"model/position=none {own('model.position', Growing)}": r"model with .*Growing.*: .*a buffer that changes its "
    r"shape needs register_buffer\(\.\.\., persistent=False\) \(.*position\.table",
    own("model.norm", Extra): r"Extra.*: its state\['.*_extra_state'\] is a numpy\.float64, with which no checkpoint",
    own(
        "model.norm", Drawn
    ): r"model with .*Drawn.*: built again, with the weights of a checkpoint, it answers otherwise",
    f"~schedule +{own('schedule', Counting)}": r"Counting.*: the rate of step 1 is 0\.001, and .* when it is asked",
}
FAILING = {
    own(
        "model.attention", Unsortable
    ): r"search fails on a small batch.*Unsortable \(.*\): TypeError: 'NoneType' object",
    own("loss", Torn): r"loss fails on a small batch in .*Torn \(.*py, line \d+\): RuntimeError: what a pity",
    own("decoding", Backwards): r"search fails on a small batch in .*Backwards \(.*, line \d+\): LookupError: nothing",
}


@pytest.mark.parametrize(("overrides", "told"), BROKEN.items())
def test_what_breaks_a_claim_is_refused_with_the_way_out(overrides: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as refused:
        rehearsed(*overrides.split())
    assert str(refused.value).endswith("; trainer.check_parts=false trains it all the same")
    rehearsed(*overrides.split(), "trainer.check_parts=false")


@pytest.mark.parametrize(("overrides", "told"), FAILING.items())
def test_what_fails_is_told_with_class_and_line(overrides: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        rehearsed(overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        own("model.attention", Same),
        own("model.norm", Noisy),
        own("loss", BelowZero),
        f"model/position=rope {own('model.position', Turned)}",
    ],
)
def test_what_keeps_the_claims_or_cannot_be_held_to_them_may_train(overrides: str) -> None:
    rehearsed(*overrides.split())


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Rateless, r"optimizer: .*\.Rateless: its parameter groups need `lr`, which the schedule sets"),
        (Deaf, r"optimizer: `step` of .*\.Deaf must call its closure, which computes the gradients"),
        (Forgetful, r"optimizer.*Forgetful.*: after a checkpoint its next update is another one; what it remembers"),
        (Boxed, r"optimizer.*Boxed.*: its state\['state'\]\[0\]\['losses'\] is a numpy.float64, with which no check"),
    ],
)
def test_an_optimizer_that_could_not_train_is_refused(part: type[torch.optim.Optimizer], told: str) -> None:
    with pytest.raises(UserError, match=told):
        rehearsed("~optimizer", "+optimizer._partial_=true", f"+{own('optimizer', part)}")
    rehearsed("~optimizer", "+optimizer._partial_=true", f"+{own('optimizer', Descent)}")


def test_without_a_rate_nothing_trains_though_parts_are_not_checked() -> None:
    words = ["~optimizer", "+optimizer._partial_=true", "trainer.check_parts=false"]
    with pytest.raises(UserError, match="need `lr`"):
        rehearsed(*words, f"+{own('optimizer', Rateless)}")
    rehearsed(*words, f"+{own('optimizer', Deaf)}")


def test_a_part_that_sets_what_is_filled_after_it_is_refused() -> None:
    with pytest.raises(UserError, match=r"FromZero.*reset_parameters of FromZero sets the linear layer outer, which"):
        rehearsed(own("model.feedforward", FromZero))


def test_what_cannot_be_held_to_the_claims_is_told(caplog: pytest.LogCaptureFixture) -> None:
    rehearsed(own("model.norm", Noisy))
    assert "test_rehearsal.Noisy gives other numbers each time" in caplog.text


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (own("model.norm", Unused), r"test_rehearsal.Unused has weights that nothing is computed with.*: .*\.spare"),
        (own("loss", BelowZero), r"the loss is -\d.* for random logits, and is minimised: mind its sign"),
    ],
)
def test_what_may_be_a_mistake_is_told(overrides: str, told: str, caplog: pytest.LogCaptureFixture) -> None:
    rehearsed(overrides)
    assert re.search(told, caplog.text)


@pytest.mark.parametrize("variation", variations())
def test_every_variation_would_pass_if_it_were_the_users(
    variation: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("etude.training.rehearsal.own_targets", lambda parts: ["mine.Mine"])
    rehearsed(*company(variation))
    assert not caplog.records


def test_the_generators_are_left_as_they_were() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    rehearsed(own("model.attention", Same), own("loss", LabelSmoothing))
    assert torch.equal(torch.rand(3), expected)
