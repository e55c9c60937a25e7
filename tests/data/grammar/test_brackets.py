"""English sentences as trees."""

from itertools import islice
from random import Random

import pytest

from etude.data.grammar.brackets import adverbial, close_sentence, leaves, plain
from etude.data.grammar.draw_sentences import SentenceDrawer
from etude.data.grammar.selection import Selection


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


def test_every_tree_that_is_drawn_closes_and_has_no_empty_constituent(selection: Selection) -> None:
    drawer = SentenceDrawer(selection, Random(5))
    for tree, _ in islice(iter(drawer.sentence, None), 3000):
        tokens, depth = tree.split(" "), 0
        for index, token in enumerate(tokens):
            depth += token.startswith("(")
            depth -= token == ")"
            assert (depth == 0) == (index == len(tokens) - 1), tree
            assert not (token == ")" and tokens[index - 1].startswith("(")), tree
