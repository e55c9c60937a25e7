"""A run is made, evaluated and gone on with by one library of matrix products."""

from collections.abc import Iterator

import pytest
from tests.processor.test_matmul import needs_setting

from etude.files import read_json, write_json
from etude.processor import matmul
from etude.processor.matmul import DEFAULT, ONEDNN
from etude.trained.load import load_trained
from etude.training.run import train

from .conftest import Freeze, found


@pytest.fixture(autouse=True)
def exact_and_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """oneDNN counts as exact on every processor; afterwards PyTorch multiplies as it did."""
    monkeypatch.setattr(matmul, "_why_no_onednn", lambda: None)
    yield
    matmul._use(DEFAULT)


@needs_setting
@pytest.mark.parametrize("library", [DEFAULT, ONEDNN])
def test_a_run_says_with_what_it_was_made_and_is_evaluated_with_that(runs: Freeze, library: str) -> None:
    run = runs(f"made-with-{library}", f"trainer.matmul={library}")
    result = train(run)
    assert result["libraries"]["matmul"] == read_json(run.environment_file)["matmul"] == library
    matmul._use(DEFAULT if library == ONEDNN else ONEDNN)
    load_trained(run)
    assert matmul._settings().fp32_precision == matmul._SETTINGS[library]


@needs_setting
def test_a_run_goes_on_with_what_it_was_begun_with(runs: Freeze) -> None:
    alone, begun = runs("matmul-alone", "trainer.matmul=onednn"), runs("matmul-begun", "trainer.matmul=default")
    train(alone)
    write_json(begun.environment_file, read_json(alone.environment_file))
    train(begun)
    assert found(begun)["weights"] == found(alone)["weights"]
    assert begun.result()["libraries"]["matmul"] == ONEDNN
