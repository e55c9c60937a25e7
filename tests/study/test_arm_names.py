"""The names of arms, all of them and one alone."""

from etude.study.arm_names import arm_names, is_arm
from etude.study.study import study_names


def test_one_alone_is_known_exactly_if_it_is_among_all() -> None:
    assert all(map(is_arm, arm_names()))
    strangers = [
        "",
        "table3/A1+",
        "table3/A1+table3/Z9",
        "/",
        "table3",
        "table3/",
        "table3/Z9",
        "single/base",
        "../table3/A1",
        "None",
    ]
    assert not any(map(is_arm, [*strangers, *(f"{study}/no-such-arm" for study in study_names())]))
