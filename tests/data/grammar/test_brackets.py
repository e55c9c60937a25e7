"""English sentences as trees."""

import pytest

from etude.data.grammar.brackets import adverbial, close_sentence, leaves, plain


def test_a_sentence_begins_with_a_capital_and_its_mark_is_its_last_word() -> None:
    tree = close_sentence("(S (NP (NP anna 's ) dog ) , (VP sleeps ) )", "?")
    assert tree == "(S (NP (NP Anna 's ) dog ) , (VP sleeps ) ? )"
    assert leaves(tree) == ["Anna", "'s", "dog", ",", "sleeps", "?"]
    assert plain(tree) == "Anna's dog, sleeps?"


@pytest.mark.parametrize(
    ("words", "tree"),
    [
        ("often", "(ADVP often )"),
        ("last week", "(NP last week )"),
        ("in the morning", "(PP in (NP the morning ) )"),
        ("at ten o'clock", "(PP at (NP ten o'clock ) )"),
        ("three days ago", "(ADVP (NP three days ) ago )"),
        ("(PP with (NP him ) )", "(PP with (NP him ) )"),
    ],
)
def test_adverbials_are_constituents_by_their_words(words: str, tree: str) -> None:
    assert adverbial(words) == tree
