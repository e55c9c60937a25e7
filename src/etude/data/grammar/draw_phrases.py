"""Draw phrases at random: nouns, articles, adjectives and adverbials."""

from random import Random

from etude.data.grammar import english, german
from etude.data.grammar.chance import Pool
from etude.data.grammar.selection import Selection
from etude.data.grammar.words import Adjective, Determiner, Noun, NounPhrase, Phrase, Verb, Wording, prepositional

PERSON = "person"

PRONOUN, NAME = 0.27, 0.08  # shares of persons
PLURAL, ADJECTIVE, OWNER = 0.25, 0.45, 0.06  # shares of noun phrases
NUMBER, BARE = 0.25, 0.25  # shares of plurals
THE_PLACE = 0.75  # share of places with "the"
COUNTED = 0.3  # share of times with a number

_REFLEXIVE = {0: {0, 3}, 1: {1, 4}, 2: set(), 3: {0, 3}, 4: {1, 4}, 5: set()}
"""Person of a subject -> persons that its object cannot have: "I see us"."""


class PhraseDrawer:
    """Draws phrases that fit their place; `random` is the only source of randomness."""

    def __init__(self, selection: Selection, random: Random) -> None:
        self.lexicon, self.selection, self.random = selection.lexicon, selection, random
        lexicon = self.lexicon
        self._names = Pool(lexicon.names)
        self._pronouns = Pool(lexicon.pronouns)
        self._articles = {
            False: Pool([word for word in lexicon.determiners if word.singular is not None]),
            True: Pool([word for word in lexicon.determiners if word.plural is not None]),
        }
        self._numbers = Pool(range(2, 100))
        self._few = Pool(range(2, 13))
        self._persons = selection.unmistakable(PERSON)
        self._positions = Pool([(word, selection.unmistakable(*word.goes_with)) for word in lexicon.plain["positions"]])
        self._plain = {
            (section, company): Pool([word for word in words if not company or company in word.goes_with])
            for section, words in lexicon.plain.items()
            for company in frozenset({""}).union(*(word.goes_with for word in words))
        }

    def chance(self, share: float) -> bool:
        """Return True with the probability `share`."""
        return self.random.random() < share

    def word(self, section: str, company: str = "") -> Wording:
        """Draw an uninflected word of a section; if `company` is given, such as a tense, one that goes with it."""
        return self._plain[section, company].draw(self.random)

    def number(self) -> int:
        """Draw a number from 2 to 99, small ones more often."""
        return self._numbers.draw(self.random)

    def subject(self, verb: Verb) -> Phrase:
        """Draw a subject for a verb."""
        person = self._person() if PERSON in verb.subjects else None
        return person or self.noun_phrase(self.selection.subjects[verb].draw(self.random))

    def object(self, verb: Verb, subject: Phrase) -> Phrase:
        """Draw an object for a verb, other than the subject."""
        person = self._person(subject) if PERSON in verb.objects else None
        return person or self.noun_phrase(self.selection.objects[verb].draw(self.random))

    def somebody(self, other: Phrase) -> Phrase:
        """Draw any person other than `other`."""
        return self._person(other) or self.noun_phrase(self._persons.draw(self.random))

    def noun_phrase(self, noun: Noun, bare: bool = False) -> NounPhrase:
        """Draw an article, a number or an owner for a noun, and perhaps an adjective unless `bare`."""
        plural = noun.plural is not None and "single" not in noun.classes and self.chance(PLURAL)
        adjective = None if bare else self._adjective(noun)
        if noun.classes & self.lexicon.own and self.chance(OWNER):
            return NounPhrase(noun, plural, owner=self._names.draw(self.random), adjective=adjective)
        if plural and self.chance(NUMBER):
            return NounPhrase(noun, plural, number=self.number(), adjective=adjective)
        is_substance = noun.plural is None and bool(noun.classes & {"food", "drink"})
        if (plural or is_substance) and self.chance(BARE):
            return NounPhrase(noun, plural, adjective=adjective)
        return NounPhrase(noun, plural, self._article(noun, plural), adjective=adjective)

    def described(self, adjective: Adjective) -> Phrase:
        """Draw a subject for "is" and an adjective."""
        person = self._person() if PERSON in adjective.classes else None
        return person or self.noun_phrase(self.selection.described[adjective].draw(self.random), bare=True)

    def where(self, places: Pool[Noun], way: str = "at") -> Wording:
        """Draw a phrase "at", "in" or "on" a place; with the way "to" in the accusative, but dative after "zu"."""
        noun = places.draw(self.random)
        preposition = noun.places[way]
        case = "accusative" if way == "to" and preposition.german != "zu" else "dative"
        return prepositional(preposition, case, self._place(noun))

    def beside(self) -> Wording:
        """Draw a phrase such as "behind a house", "under a tree"."""
        position, nouns = self._positions.draw(self.random)
        return prepositional(position, "dative", self._place(nouns.draw(self.random)))

    def company(self, subject: Phrase) -> Wording:
        """Draw a phrase such as "with" or "without" somebody else."""
        companion = self.word("companions")
        return prepositional(companion, "dative" if companion.german == "mit" else "accusative", self.somebody(subject))

    def time(self, company: str) -> Wording:
        """Draw a time that goes with a tense: "yesterday", "three days ago", "at ten o'clock"."""
        if company == "progressive" or company == "perfect" or not self.chance(COUNTED):
            return self.word("times", company)
        few = self._few.draw(self.random)
        ours, theirs = english.numeral(few), german.numeral(few)
        if company == "present" or self.chance(0.3):
            return Wording(f"at {ours} o'clock", f"um {theirs} Uhr")
        span = self.word("spans")
        if company == "past":
            return Wording(f"{ours} {span.english} ago", f"vor {theirs} {span.german}")
        return Wording(f"in {ours} {span.english}", f"in {theirs} {span.german}")

    def _person(self, other: Phrase | None = None) -> Phrase | None:
        """Draw a pronoun or a name; or None, so that the caller draws a noun."""
        if self.chance(NAME):
            return self._names.draw(self.random)
        if not self.chance(PRONOUN):
            return None
        pronoun = self._pronouns.draw(self.random)
        return None if other and pronoun.person in _REFLEXIVE[other.person] else pronoun

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
        """Make the noun phrase of a place: singular, mostly with "the"."""
        adjective = self._adjective(noun)
        article = self.lexicon.the if self.chance(THE_PLACE) else self._article(noun, False)
        return NounPhrase(noun, determiner=article, adjective=adjective)
