"""Drawing phrases: which noun, which article, which adverb."""

from random import Random

from etude.data.grammar import english, german
from etude.data.grammar.chance import Pool
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.phrases import Named, NounPhrase, Personal, Phrase, Prepositional
from etude.data.grammar.selection import Selection
from etude.data.grammar.words import Adjective, Determiner, Noun, Verb, Wording

PERSON = "person"

PRONOUN, NAME = 0.27, 0.08  # of persons
PLURAL, ADJECTIVE, OWNER = 0.25, 0.45, 0.06  # of noun phrases
NUMBER, BARE = 0.25, 0.25  # of plurals
THE_PLACE = 0.75  # of places
COUNTED = 0.3  # of times

_REFLEXIVE = {0: {0, 3}, 1: {1, 4}, 2: set(), 3: {0, 3}, 4: {1, 4}, 5: set()}
"""Whom a subject cannot have as its object: "I see us"."""


class PhraseDrawer:
    """Draws phrases that fit their place.

    Args:
        lexicon: the words
        selection: which of them go together
        random: the only source of chance
    """

    def __init__(self, lexicon: Lexicon, selection: Selection, random: Random) -> None:
        self.lexicon, self.selection, self.random = lexicon, selection, random
        self._names = Pool(lexicon.names)
        self._pronouns = Pool(lexicon.pronouns)
        self._articles = {
            False: Pool([word for word in lexicon.determiners if word.singular is not None]),
            True: Pool([word for word in lexicon.determiners if word.plural is not None]),
        }
        self._numbers = Pool(range(2, 100))
        self._few = Pool(range(2, 13))
        self._persons = selection.unmistakable(frozenset({PERSON}))
        self._companions = Pool(lexicon.plain["companions"])
        self._positions = Pool([(word, selection.unmistakable(word.goes_with)) for word in lexicon.plain["positions"]])
        self._adjectives = Pool(lexicon.adjectives)
        self._spans = Pool(lexicon.plain["spans"])
        self._adverbs = {
            (section, tense): Pool([word for word in lexicon.plain[section] if tense in word.goes_with])
            for section in ("times", "frequencies")
            for tense in frozenset().union(*(word.goes_with for word in lexicon.plain[section]))
        }

    def chance(self, share: float) -> bool:
        """True in that share of all cases."""
        return self.random.random() < share

    def number(self) -> int:
        """A number from 2 to 99, small ones more often."""
        return self._numbers.draw(self.random)

    def subject(self, verb: Verb) -> Phrase:
        """Who does what the verb says."""
        if PERSON in verb.subjects and (person := self._person(None)):
            return person
        return self.noun_phrase(self.selection.subjects[verb].draw(self.random))

    def object(self, verb: Verb, subject: Phrase) -> Phrase:
        """To whom or what, the subject excepted."""
        if PERSON in verb.objects and (person := self._person(subject)):
            return person
        return self.noun_phrase(self.selection.objects[verb].draw(self.random))

    def somebody(self, other: Phrase) -> Phrase:
        """Any person but `other`."""
        return self._person(other) or self.noun_phrase(self._persons.draw(self.random))

    def noun_phrase(self, noun: Noun, bare: bool = False) -> NounPhrase:
        """A noun with an article, a number or an owner, and perhaps an adjective, unless it is to stay `bare`."""
        plural = noun.plural is not None and "single" not in noun.classes and self.chance(PLURAL)
        adjective = None if bare else self._adjective(noun)
        if noun.classes & self.lexicon.own and self.chance(OWNER):
            return NounPhrase(noun, plural, owner=self._names.draw(self.random), adjective=adjective)
        if plural and self.chance(NUMBER):
            return NounPhrase(noun, plural, number=self.number(), adjective=adjective)
        if (plural or _is_substance(noun)) and self.chance(BARE):
            return NounPhrase(noun, plural, adjective=adjective)
        return NounPhrase(noun, plural, self._article(noun, plural), adjective=adjective)

    def quality(self) -> Adjective:
        """What something may be like."""
        return self._adjectives.draw(self.random)

    def described(self, adjective: Adjective) -> Phrase:
        """Somebody or something that is said to be so."""
        if PERSON in adjective.classes and (person := self._person(None)):
            return person
        return self.noun_phrase(self.selection.described[adjective].draw(self.random), bare=True)

    def where(self, places: Pool[Noun]) -> Prepositional:
        """At, in or on a place."""
        noun = places.draw(self.random)
        assert noun.where is not None
        return Prepositional(noun.where.at, "dative", self._place(noun))

    def where_to(self, places: Pool[Noun]) -> Prepositional:
        """To, into or onto a place: accusative, but dative after "zu"."""
        noun = places.draw(self.random)
        assert noun.where is not None
        case = "dative" if noun.where.to.german == "zu" else "accusative"
        return Prepositional(noun.where.to, case, self._place(noun))

    def beside(self) -> Prepositional:
        """Behind a house, under a tree."""
        position, nouns = self._positions.draw(self.random)
        return Prepositional(position, "dative", self._place(nouns.draw(self.random)))

    def company(self, subject: Phrase) -> Prepositional:
        """With, or without, somebody else."""
        companion = self._companions.draw(self.random)
        case = "dative" if companion.german == "mit" else "accusative"
        return Prepositional(companion, case, self.somebody(subject))

    def time(self, company: str) -> Wording:
        """When, for a tense: "yesterday", "three days ago", "at ten o'clock"."""
        if company == "progressive" or company == "perfect" or not self.chance(COUNTED):
            return self._adverbs["times", company].draw(self.random)
        few = self._few.draw(self.random)
        ours, theirs = english.numeral(few), german.numeral(few)
        if company == "present" or self.chance(0.3):
            return Wording(f"at {ours} o'clock", f"um {theirs} Uhr")
        span = self._spans.draw(self.random)
        if company == "past":
            return Wording(f"{ours} {span.english} ago", f"vor {theirs} {span.german}")
        return Wording(f"in {ours} {span.english}", f"in {theirs} {span.german}")

    def frequency(self, company: str) -> Wording:
        """How often, for a tense."""
        return self._adverbs["frequencies", company].draw(self.random)

    def _person(self, other: Phrase | None) -> Phrase | None:
        """A pronoun or a name, or None where a noun says it better."""
        if self.chance(NAME):
            return Named(self._names.draw(self.random))
        if not self.chance(PRONOUN):
            return None
        pronoun = self._pronouns.draw(self.random)
        return None if other and pronoun.person in _REFLEXIVE[other.person] else Personal(pronoun)

    def _adjective(self, noun: Noun) -> Adjective | None:
        return self.selection.adjectives[noun.classes].draw(self.random) if self.chance(ADJECTIVE) else None

    def _article(self, noun: Noun, plural: bool) -> Determiner:
        while True:
            article = self._articles[plural].draw(self.random)
            if article.possessive and not noun.classes & self.lexicon.own:
                continue
            if article.definite or noun.plural is not None:
                return article

    def _place(self, noun: Noun) -> NounPhrase:
        """Most places are known, and one of a kind."""
        adjective = self._adjective(noun)
        if self.chance(THE_PLACE):
            return NounPhrase(noun, determiner=self.lexicon.the, adjective=adjective)
        return NounPhrase(noun, determiner=self._article(noun, False), adjective=adjective)


def _is_substance(noun: Noun) -> bool:
    """Whether "cold water" may do without an article."""
    return noun.plural is None and bool(noun.classes & {"food", "drink"})
