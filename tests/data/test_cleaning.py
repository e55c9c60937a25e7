import pytest

from etude.data.cleaning import Cleaning, describe_source

RULES = Cleaning(max_words=6, max_ratio=2.5)


@pytest.mark.parametrize(
    ("source", "target", "fate"),
    [
        ("a b", "c d e f g", "pairs"),
        ("a b c d e f", "c d e", "pairs"),
        (" \u00a0", "c", "blank"),
        ("a", "", "blank"),
        ("a b c d e f g", "a b c d e f", "long"),
        ("a", "b " * 7, "long"),
        ("a b", "c d e f g h", "uneven"),
        ("a b c d e f", "c  d", "uneven"),
    ],
)
def test_a_pair_goes_under_the_first_rule_that_it_breaks(source: str, target: str, fate: str) -> None:
    assert RULES.classify(source, target) == fate


def test_the_counts_of_a_source_are_told_in_one_line() -> None:
    assert describe_source({"pairs": 7}) == "7 of 7 pairs"
    assert describe_source({"uneven": 1, "pairs": 1996, "blank": 3}) == (
        "1,996 of 2,000 pairs (3 blank, 1 uneven left out)"
    )
    assert describe_source({"blank": 3}) == "0 of 3 pairs (3 blank left out)"
