"""Phrases: nouns with what surrounds them, each said in both languages from one meaning.

Every phrase is asked for its words by case, in English too: "he" is nominative, "him" any other.
"""

from abc import ABC, abstractmethod
from typing import Protocol

from etude.data.grammar import english, german
from etude.data.grammar.english import THIRD_PLURAL, THIRD_SINGULAR
from etude.data.grammar.words import Adjective, Classes, Determiner, Name, Noun, PersonalPronoun, Verb, Wording


class Description(Protocol):
    """What is told of a phrase behind it, such as a relative clause."""

    def english(self) -> str:
        """The words."""

    def german(self) -> str:
        """The words."""


class Phrase(ABC):
    """What can be a subject or an object.

    Attributes:
        person: the index of the verb form that goes with it (see english.py)
        classes: the classes of things it belongs to
        gender: what a German pronoun that refers to it agrees with: "m", "f", "n" or "plural"
        relative: a clause that describes it; it stands where the clause around it wants it
        definite: whether it names something known, so that German "nicht" may follow it
        negative: whether it says "kein" itself
        is_pronoun: whether German hurries it to the front
    """

    person = THIRD_SINGULAR
    classes = frozenset({"person", "adult"})
    gender = "n"
    relative: Description | None = None
    definite = True
    negative = False
    is_pronoun = False

    @abstractmethod
    def english(self, case: str) -> str:
        """The words, without the relative clause."""

    @abstractmethod
    def german(self, case: str) -> str:
        """The words, without the relative clause."""


class Personal(Phrase):
    """A pronoun: "she", "sie"."""

    is_pronoun = True

    def __init__(self, pronoun: PersonalPronoun, classes: Classes = Phrase.classes) -> None:
        self.pronoun, self.classes = pronoun, classes
        self.person = pronoun.person
        self.gender = pronoun.gender

    def english(self, case: str) -> str:
        """ "she" or "her"."""
        return self.pronoun.english[case]

    def german(self, case: str) -> str:
        """ "sie" or "ihr"."""
        return self.pronoun.german[case]


class Named(Phrase):
    """A person by first name."""

    def __init__(self, name: Name) -> None:
        self.name = name
        self.gender = name.gender

    def english(self, case: str) -> str:
        """The name."""
        return self.name.text

    def german(self, case: str) -> str:
        """The same name."""
        return self.name.text


class NounPhrase(Phrase):
    """ "these two old dogs", "Anna's book", "cold water".

    Args:
        noun: the head
        plural: whether there are several
        determiner: None where a number, an owner or nothing stands in its place
        owner: whose it is
        number: how many, 0 where it is not said
        adjective: what it is like
    """

    def __init__(
        self,
        noun: Noun,
        plural: bool = False,
        determiner: Determiner | None = None,
        owner: Name | None = None,
        number: int = 0,
        adjective: Adjective | None = None,
    ) -> None:
        self.noun, self.plural, self.determiner = noun, plural, determiner
        self.owner, self.number, self.adjective = owner, number, adjective
        self.person = THIRD_PLURAL if plural else THIRD_SINGULAR
        self.gender = "plural" if plural else noun.gender
        self.classes = noun.classes
        self.definite = owner is not None or (determiner is not None and determiner.definite)
        self.negative = determiner is not None and determiner.negative

    def english(self, case: str) -> str:
        """Determiner, number, adjective, noun."""
        words = []
        if self.number:
            words.append(english.numeral(self.number))
        if self.adjective:
            words.append(self.adjective.english)
        words.append((self.noun.plural or "") if self.plural else self.noun.english)
        if self.owner:
            words.insert(0, f"{self.owner.text}'s")
        elif self.determiner and (word := self._english_determiner(words[0])):
            words.insert(0, word)
        return " ".join(words)

    def german(self, case: str) -> str:
        """The same order; the adjective's ending depends on what stands before it."""
        words = []
        declension = "strong"
        if self.owner:
            words.append(f"{self.owner.text}s")
        elif self.determiner:
            words.append(self.determiner.german[self.gender, case])
            declension = self.determiner.declension
        if self.number:
            words.append(german.numeral(self.number))
        if self.adjective:
            words.append(self.adjective.german[declension][self.gender, case])
        words.append(self.noun.german[self.plural, case])
        return " ".join(words)

    def _english_determiner(self, following: str) -> str | None:
        assert self.determiner is not None
        if self.plural:
            return self.determiner.plural
        if self.determiner.singular != "a":
            return self.determiner.singular
        return english.article(following) if self.noun.plural else ""


class Prepositional:
    """A preposition and a phrase: "in the garden", "im Garten"."""

    def __init__(self, wording: Wording, case: str, phrase: Phrase) -> None:
        self.wording, self.case, self.phrase = wording, case, phrase

    def english(self) -> str:
        """The preposition and the phrase."""
        return f"{self.wording.english} {self.phrase.english(self.case)}"

    def german(self) -> str:
        """The preposition and the phrase, run together where German does: "im"."""
        return attached(self.wording.german, self.phrase, self.case)


def attached(preposition: str, phrase: Phrase, case: str) -> str:
    """A German preposition before a phrase; with "der", "das" or "dem" it may become one word."""
    article, space, rest = phrase.german(case).partition(" ")
    both = f"{preposition} {article}"
    return german.CONTRACTIONS.get(both, both) + space + rest


def object_case(verb: Verb) -> tuple[str, str]:
    """(preposition or "", case) of the object that a German verb takes."""
    if verb.german.preposition:
        return verb.german.preposition
    return "", "dative" if verb.frame == "dative" else "accusative"
