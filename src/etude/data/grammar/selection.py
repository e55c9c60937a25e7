"""Which word may stand where.

A place in a sentence, such as the object of "buy", is open to some classes of nouns. The grammar is unambiguous
although its words are not: a place is closed to a noun if the same English word would fit there in another sense. One
never "sees" a bat; but whoever feeds one, or repairs it, tells us which it is, however far away the verb stands.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from etude.data.grammar.chance import Pool
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.phrases import Phrase
from etude.data.grammar.words import Adjective, Classes, Noun

Word = TypeVar("Word", Noun, Adjective)
ROLES = ("subjects", "objects", "places")


class Selection:
    """What may be said of what, by frequency.

    Attributes:
        subjects, objects, places: verb -> the nouns that may be its subject, its object, the place it leads to
        described: adjective -> the nouns of which "is" may say it
        adjectives: classes of a noun -> the adjectives that may stand before it
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._nouns = lexicon.nouns
        twins = defaultdict(list)
        for verb in lexicon.verbs:
            twins[verb.english.base, verb.english.rest].append(verb)
        self.subjects, self.objects, self.places = {}, {}, {}
        for same in twins.values():
            subjects, objects, places = (_union(getattr(verb, role) for verb in same) for role in ROLES)
            for verb in same:
                self.subjects[verb] = self.nouns(verb.subjects, subjects)
                self.objects[verb] = self.nouns(verb.objects, objects)
                self.places[verb] = self.locations(verb.places, places)
        same_adjectives = defaultdict(list)
        for adjective in lexicon.adjectives:
            same_adjectives[adjective.english].append(adjective)
        self.described = {
            adjective: self.nouns(adjective.classes, _union(twin.classes for twin in same))
            for same in same_adjectives.values()
            for adjective in same
        }
        kinds = {noun.classes for noun in self._nouns} | {Phrase.classes}
        self.adjectives = {kind: _pool(a for a in lexicon.adjectives if a.classes & kind) for kind in kinds}

    def nouns(self, classes: Classes, rivals: Classes) -> Pool[Noun]:
        """The nouns for a place open to `classes`, without those that have another sense in `classes` or `rivals`."""
        senses = defaultdict(set)
        for noun in self._nouns:
            if noun.classes & (classes | rivals):
                senses[noun.english].add(noun)
        return _pool(noun for noun in self._nouns if noun.classes & classes and len(senses[noun.english]) == 1)

    def locations(self, classes: Classes, rivals: Classes) -> Pool[Noun]:
        """Those of `nouns` at, in or on which something can be."""
        return _pool(noun for noun in self.nouns(classes, rivals).items if noun.where)

    def unmistakable(self, classes: Classes) -> Pool[Noun]:
        """The nouns of these classes whose English word has one sense only."""
        return self.nouns(classes, _union(noun.classes for noun in self._nouns))


def _pool(words: Iterable[Word]) -> Pool[Word]:
    items = list(words)
    return Pool(items, [word.weight for word in items])


def _union(sets: Iterable[Classes]) -> Classes:
    return frozenset().union(*sets)
