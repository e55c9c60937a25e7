"""Each variation is one model, and no model is left out."""

from tests.variations import variations

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.study.axes import axes


def test_a_default_that_is_left_out_is_the_model_that_its_axis_has_anyway() -> None:
    left_out = [
        (f"{axis.group}={axis.default}", axis.needs.split())
        for axis in axes()
        if axis.group.startswith("model/") and f"{axis.needs} {axis.group}={axis.default}".strip() not in variations()
    ]
    assert left_out
    for default, needs in left_out:
        assert resolve(compose([*needs, default])) == resolve(compose(needs)), default


def test_every_other_option_stands_once() -> None:
    others = [
        f"{axis.needs} {axis.group}={value}".strip()
        for axis in axes()
        for value in axis.values
        if axis.group.startswith("model/") and value != axis.default
    ]
    assert variations()[1:] == others
