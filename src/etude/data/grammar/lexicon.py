"""The lexicon as a whole, and which word may stand where.

A place in a sentence, such as the object of "buy", is open to some classes of nouns. The grammar is unambiguous
although its words are not: a place is closed to a noun if the same English word would fit there in another sense. One
never "sees" a bat; but whoever feeds one, or repairs it, tells us which it is, however far away the verb stands.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from etude.data.grammar import reading
from etude.data.grammar.words import Adjective, Classes, Noun, Verb

PLAIN = (
    "degrees",
    "times",
    "spans",
    "frequencies",
    "manners",
    "companions",
    "positions",
    "conjunctions",
    "coordinators",
    "interrogatives",
)
"""The sections of words without inflection."""


@cache
def lexicon() -> "Lexicon":
    """The lexicon that ships with the package."""
    return Lexicon(files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8"))


class Lexicon:
    """The words of every kind, in the order of the file.

    Attributes:
        negations: what becomes of "a" under negation ("not ... a", German "kein"), and "no"
        impersonal: "it", by the German gender of what it stands for
        plain: section -> words without inflection
    """

    def __init__(self, text: str) -> None:
        entries = reading.Entries(text)
        self.nouns = reading.nouns(entries)
        self.verbs = reading.verbs(entries)
        self.adjectives = reading.adjectives(entries)
        self.names = reading.names(entries)
        self.pronouns = reading.pronouns(entries, "pronouns")
        self.impersonal = {word.gender: word for word in reading.pronouns(entries, "impersonal")}
        self.determiners = reading.determiners(entries, "determiners")
        self.negations = reading.determiners(entries, "negations")
        self.modals = reading.modals(entries)
        self.plain = {section: reading.wordings(entries, section) for section in PLAIN}

    def nouns_for(self, classes: Classes, rivals: Classes) -> list[Noun]:
        """The nouns for a place open to `classes`, without those that have another sense in `classes` or `rivals`."""
        senses = defaultdict(set)
        for noun in self.nouns:
            if noun.classes & (classes | rivals):
                senses[noun.english].add(noun)
        return [noun for noun in self.nouns if noun.classes & classes and len(senses[noun.english]) == 1]

    def subjects_of(self, verb: Verb) -> list[Noun]:
        """The nouns that can be its subject, whatever else the same English verb may mean."""
        return self.nouns_for(verb.subjects, _union(twin.subjects for twin in self._twins(verb)))

    def objects_of(self, verb: Verb) -> list[Noun]:
        """The nouns that can be its object, or the place it leads to."""
        return self.nouns_for(verb.objects, _union(twin.objects for twin in self._twins(verb)))

    def described_by(self, adjective: Adjective) -> list[Noun]:
        """The nouns that can be the subject of "is" and this adjective."""
        twins = (other for other in self.adjectives if other.english == adjective.english)
        return self.nouns_for(adjective.classes, _union(twin.classes for twin in twins))

    def adjectives_for(self, noun: Noun) -> list[Adjective]:
        """The adjectives that can stand before a noun."""
        return [adjective for adjective in self.adjectives if adjective.classes & noun.classes]

    def _twins(self, verb: Verb) -> list[Verb]:
        return [
            other
            for other in self.verbs
            if (other.english.base, other.english.rest) == (verb.english.base, verb.english.rest)
        ]


def _union(sets: Iterable[Classes]) -> Classes:
    return frozenset().union(*sets)
