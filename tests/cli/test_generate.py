"""`etude generate`: what is typed is text."""

import pytest

from .conftest import status


@pytest.mark.parametrize("prompt", ["5", "It's, or is it"])
def test_a_prompt_that_hydra_would_take_for_something_else_is_text(
    prompt: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("generate", "run=nowhere", f"prompt={prompt}") == 2
    assert "nowhere is not the directory of a run" in capsys.readouterr().err
