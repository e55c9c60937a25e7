"""Make ungrammatical sentences: an English sentence of the grammar with one error.

An error is certain if two neighbouring words never occur one after the other in the grammar. There are three kinds of
such pairs, which follow from how phrases and clauses are made:

- order: after "the", "a", "an" and "every" comes a number, an adjective or a noun (`NounPhrase`), or a word that
  follows them in the fixed phrases of the lexicon ("every day");
- number: if it is a noun, it is singular after "a", "an", "every" and "this", and plural after "these", "many" and
  "some";
- agreement: "he", "she", "I", "we" and "they" are always subjects. In a statement the verb follows (`Clause.english`),
  with at most an adverb between: a present form has the ending -s after "he" and "she", and none after the others.

Ambiguous words, such as "put", which may be a past form, are not used.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from etude.data.grammar.english import numeral
from etude.data.grammar.lexicon import Lexicon

_ARTICLES = {"the", "a", "an", "every"}
_OF_ONE, _OF_SEVERAL = {"a", "an", "every", "this"}, {"these", "many", "some"}
_HE, _THEY = {"he", "she"}, {"i", "we", "they"}

Words = list[str]


class Breaker:
    """Makes one error in an English sentence."""

    def __init__(self, lexicon: Lexicon) -> None:
        singular = {noun.english for noun in lexicon.nouns}
        plural = {noun.plural for noun in lexicon.nouns if noun.plural}
        modifiers = {adjective.english for adjective in lexicon.adjectives} | {numeral(n) for n in range(1, 100)}
        fixed = [wording.english.split() for section in lexicon.plain.values() for wording in section]
        after_articles = {second for words in fixed for first, second in pairwise(words) if first in _ARTICLES}
        self._after_articles = _first_words(singular | plural | modifiers) | after_articles
        self._singular = singular - _first_words(plural | modifiers) - _first_words(_several_words(singular))
        self._plural = plural - _first_words(singular | modifiers) - _first_words(_several_words(plural))
        verbs = [verb.english for verb in lexicon.verbs]
        others = {form for verb in verbs for form in (verb.past, verb.participle)} | _first_words(
            {word.english for word in lexicon.plain["frequencies"]}
            | {form for modal in lexicon.modals for form in (modal.english.base, modal.english.past)}
        )
        bases, thirds = {verb.base for verb in verbs}, {verb.third for verb in verbs}
        self._bases, self._thirds = bases - thirds - others, thirds - bases - others
        self._other_number = {noun.english: noun.plural for noun in lexicon.nouns if noun.plural}
        self._other_number |= {there: here for here, there in self._other_number.items()}
        self._other_person = {verb.base: verb.third for verb in verbs} | {verb.third: verb.base for verb in verbs}

    def break_sentence(self, sentence: str, random: Random) -> str | None:
        """Return the sentence with one error, or None if no change is known to be an error."""
        *words, mark = [*sentence[:-1].split(), sentence[-1]]
        kinds = [
            [wrong for wrong in kind if self._is_wrong(wrong, mark)]
            for kind in (_swapped(words), _replaced(words, self._other_number), _replaced(words, self._other_person))
        ]
        kinds = [kind for kind in kinds if kind]
        return " ".join(random.choice(random.choice(kinds))) + mark if kinds else None

    def is_wrong(self, sentence: str) -> bool:
        """Whether two neighbouring words show that the sentence is ungrammatical; if not, it may still be."""
        return self._is_wrong(sentence[:-1].split(), sentence[-1])

    def _is_wrong(self, words: Sequence[str], mark: str) -> bool:
        neighbours = pairwise([*(word.lower() if word == words[0] or word == "I" else word for word in words), ""])
        return any(self._never_meet(first, second.rstrip(","), mark) for first, second in neighbours)

    def _never_meet(self, first: str, second: str, mark: str) -> bool:
        return (
            (first in _ARTICLES and second not in self._after_articles)
            or (first in _OF_ONE and second in self._plural)
            or (first in _OF_SEVERAL and second in self._singular)
            or (first in _HE and second in self._bases and mark == ".")
            or (first in _THEY and second in self._thirds)
        )


def _swapped(words: Words) -> Iterator[Words]:
    """Yield each swap of two neighbours, except the first word, which has a capital, and words with commas."""
    for n in range(1, len(words) - 1):
        if not words[n].endswith(",") and not words[n + 1].endswith(","):
            yield [*words[:n], words[n + 1], words[n], *words[n + 2 :]]


def _replaced(words: Words, other: dict[str, str]) -> Iterator[Words]:
    """Yield each replacement of a word by its other form."""
    for n, word in enumerate(words):
        bare = word.rstrip(",")
        if bare in other:
            yield [*words[:n], other[bare] + word[len(bare) :], *words[n + 1 :]]


def _first_words(phrases: set[str]) -> set[str]:
    return {phrase.split()[0] for phrase in phrases if phrase}


def _several_words(phrases: set[str]) -> set[str]:
    return {phrase for phrase in phrases if " " in phrase}
