"""A run whose steps are compiled is the same run, and what cannot be compiled is told in a sentence."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from etude.errors import UserError
from etude.training.compiled import in_few_shapes, round_up_rows
from etude.training.run import train

from .conftest import Freeze


@pytest.mark.slow
def test_a_compiled_run_is_the_same_run_and_learns_the_same(runs: Freeze) -> None:
    plain, compiled = (
        runs(f"compiled {switch}", "model.dropout=0", f"trainer.compile={switch}") for switch in ("false", "true")
    )
    assert compiled.path.name == plain.path.name
    expected, found = train(plain), train(compiled)
    assert found["test"]["perplexity"] == pytest.approx(expected["test"]["perplexity"], rel=1e-4)
    assert found["steps"] == expected["steps"]


def test_a_run_of_few_shapes_learns_the_same_and_asks_the_compiler_for_graphs(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a compiler changes what it is given is the claim above; here it gives it back as it is."""
    shapes, asked = set(), []

    def compiler(function: Callable[..., Tensor], **options: object) -> Callable[..., Tensor]:
        asked.append(options)

        def compiled(*tensors: Tensor) -> Tensor:
            shapes.add(tensors[0].shape)
            return function(*tensors)

        return compiled

    plain = runs("all shapes", "model.dropout=0")
    recorded = runs("few shapes", "model.dropout=0", "trainer.compile=reduce-overhead")
    assert recorded.path.name == plain.path.name
    expected = train(plain)
    monkeypatch.setattr(torch, "compile", compiler)
    found = train(recorded)
    assert found["test"]["perplexity"] == pytest.approx(expected["test"]["perplexity"], rel=1e-4)
    assert {rows % 8 for rows, _ in shapes} == {0}
    [options] = asked
    graphs = torch._inductor.list_mode_options("reduce-overhead")
    assert graphs.items() <= options["options"].items()
    assert set(options["options"]) <= set(torch._inductor.list_options())


@given(st.integers(1, 5000))
def test_shapes_are_few_and_hold_little_more(rows: int) -> None:
    padded = round_up_rows(rows)
    assert rows <= padded < rows + max(8, rows / 4)
    assert padded % 8 == 0
    assert len({round_up_rows(fewer) for fewer in range(1, rows + 1)}) <= 4 * max(2, rows.bit_length() - 3)


def test_the_rows_that_are_added_change_no_gradient() -> None:
    weight = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    source = torch.randint(5, (11, 7))

    def step(source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        return weight[source].tanh() * source_mask[..., None]

    mask = source > 0
    for function in (step, in_few_shapes(step)):
        weight.grad = None
        found = function(source, mask, source)
        assert found.shape == (11, 7, 3)
        found.square().sum().backward()
        if function is step:
            expected = weight.grad
    torch.testing.assert_close(weight.grad, expected)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("no compiler is found here"),
        RuntimeError(
            "it happened in a subprocess:\n\nTraceback (most recent call last):\nOSError: no compiler is found here\n"
        ),
    ],
)
def test_what_cannot_be_compiled_is_told_in_a_sentence(
    error: RuntimeError, runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise torch._dynamo.exc.BackendCompilerFailed(print, error, None)

    monkeypatch.setattr(torch, "compile", lambda function, **options: refuse)
    with pytest.raises(UserError, match=r"^this.* RuntimeError: .*no compiler is found here; trainer\.compile=false"):
        train(runs("not compiled", "trainer.compile=true"))
