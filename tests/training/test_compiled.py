"""A run whose steps are compiled is the same run, and what cannot be compiled is told in a sentence."""

import pytest
import torch

from etude.errors import UserError
from etude.training.run import train

from .conftest import Freeze


@pytest.mark.slow
def test_a_compiled_run_is_the_same_run_and_learns_the_same(runs: Freeze) -> None:
    plain, compiled = (
        runs(f"compiled {switch}", "model.dropout=0", f"trainer.compile={switch}", searched=False)
        for switch in ("false", "true")
    )
    assert compiled.path.name == plain.path.name
    expected, found = train(plain), train(compiled)
    assert found["test"]["perplexity"] == pytest.approx(expected["test"]["perplexity"], rel=1e-4)
    assert found["steps"] == expected["steps"]


def test_what_cannot_be_compiled_is_told_in_a_sentence(runs: Freeze, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise torch._dynamo.exc.BackendCompilerFailed(print, RuntimeError("no compiler is found here"), None)

    monkeypatch.setattr(torch, "compile", lambda function, **options: refuse)
    with pytest.raises(UserError, match=r"no compiler is found here.*trainer\.compile=false"):
        train(runs("not compiled", "trainer.compile=true", searched=False))
