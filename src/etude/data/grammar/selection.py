"""Which words may fill which slots of a sentence.

A slot, such as the object of "buy", takes nouns of some classes. The grammar is unambiguous although its words are not:
a slot does not take a noun if the same English word would fit there in another sense. So nobody "sees" a bat; but one
can feed or repair it, and then the verb shows which sense is meant, however far away it is.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from etude.data.grammar.chance import Pool
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.words import Adjective, Classes, Noun, Phrase, Verb

Word = TypeVar("Word", Noun, Adjective, Verb)


class Selection:
    """The words that fit each slot, weighted by frequency.

    Attributes:
        subjects, objects, places: verb -> the nouns that may be its subject, its object, its place
        described: adjective -> the nouns that may be the subject of "is" and this adjective
        adjectives: classes of a noun -> the adjectives that may precede it
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        twins = defaultdict(list)
        for verb in lexicon.verbs:
            twins[verb.english.base, verb.english.rest].append(verb)
        self.subjects, self.objects, self.places = {}, {}, {}
        for verb in lexicon.verbs:
            same = twins[verb.english.base, verb.english.rest]
            self.subjects[verb] = self.nouns(verb.subjects, *(twin.subjects for twin in same))
            self.objects[verb] = self.nouns(verb.objects, *(twin.objects for twin in same))
            self.places[verb] = self.locations(verb.places, *(twin.places for twin in same))
        same_word = defaultdict(list)
        for adjective in lexicon.adjectives:
            same_word[adjective.english].append(adjective.classes)
        self.described = {word: self.nouns(word.classes, *same_word[word.english]) for word in lexicon.adjectives}
        kinds = {noun.classes for noun in lexicon.nouns} | {Phrase.classes}
        self.adjectives = {kind: weighted(a for a in lexicon.adjectives if a.classes & kind) for kind in kinds}

    def nouns(self, classes: Classes, *rivals: Classes) -> Pool[Noun]:
        """Return the nouns for a slot that takes `classes`, but none with another sense in `classes` or `rivals`."""
        heard = classes.union(*rivals)
        senses = defaultdict(set)
        for noun in self.lexicon.nouns:
            if noun.classes & heard:
                senses[noun.english].add(noun)
        fitting = (noun for noun in self.lexicon.nouns if noun.classes & classes)
        return weighted(noun for noun in fitting if len(senses[noun.english]) == 1)

    def locations(self, classes: Classes, *rivals: Classes) -> Pool[Noun]:
        """Return the nouns as `nouns` does, but only those that can be a place."""
        return weighted(noun for noun in self.nouns(classes, *rivals).items if noun.places)

    def unmistakable(self, *classes: str) -> Pool[Noun]:
        """Return the nouns of these classes whose English word has only one sense."""
        return self.nouns(frozenset(classes), *(noun.classes for noun in self.lexicon.nouns))


def weighted(words: Iterable[Word]) -> Pool[Word]:
    """Make a pool of words, weighted by their rank in their section."""
    items = list(words)
    return Pool(items, [word.weight for word in items])
