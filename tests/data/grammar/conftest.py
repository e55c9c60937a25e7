"""Words to build sentences from."""

from collections.abc import Callable

import pytest

from etude.data.grammar.lexicon import Lexicon, shipped
from etude.data.grammar.selection import Selection
from etude.data.grammar.words import NounPhrase


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    return shipped()


@pytest.fixture(scope="session")
def selection(lexicon: Lexicon) -> Selection:
    return Selection(lexicon)


@pytest.fixture(scope="session")
def np(lexicon: Lexicon) -> Callable[..., NounPhrase]:
    """A noun phrase from German singular, English determiner and English adjective."""

    def build(noun: str, determiner: str = "the", adjective: str = "", plural: bool = False, **more: int) -> NounPhrase:
        return NounPhrase(
            next(word for word in lexicon.nouns if word.german[False, "nominative"] == noun),
            plural,
            next((word for word in lexicon.determiners if determiner in (word.singular, word.plural)), None),
            adjective=next((word for word in lexicon.adjectives if word.english == adjective), None),
            **more,
        )

    return build
