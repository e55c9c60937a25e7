"""What a trained run can still do is checked before it is done."""

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.errors import UserError
from etude.tasks import build


@pytest.mark.parametrize(
    "typed", [("model/position=learned",), ("model/attention=synthesizer",)], ids=["positions", "scores"]
)
def test_a_search_beyond_the_rows_that_a_run_has_learned_is_refused(typed: tuple[str, ...]) -> None:
    config = resolve_valid(compose(typed))
    search = config["decoding"]
    assert build.check_decoding(config, search | {"max_len_offset": 10})
    with pytest.raises(UserError, match=r"decoding\.max_len_offset=900 needs \d+ positions, and this run has learned"):
        build.check_decoding(config, search | {"max_len_offset": 900})
