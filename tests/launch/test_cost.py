import logging

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.launch.slots import planned_hours


def test_what_runs_take_is_what_their_plan_says() -> None:
    configs = [resolve(compose(words)) for words in ([], ["budget.max_steps=100000"], ["model.n_layers=1"])]
    usual, long, shallow = planned_hours(configs)
    assert shallow < usual < long


def test_runs_that_cannot_be_planned_all_count_alike_and_it_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="etude")
    assert planned_hours([{"model": "of another age"}, {}]) == [0.0, 0.0]
    assert caplog.messages == ["the runs start in the order given, for their plan cannot be made: 'data'"]
