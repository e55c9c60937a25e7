"""Sentences: clauses put together, and the pair of lines that comes out."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from etude.data.corpus import Pair
from etude.data.grammar.clauses import Clause
from etude.data.grammar.english import BE
from etude.data.grammar.phrases import NounPhrase, Prepositional
from etude.data.grammar.words import Verb, Wording


class Sentence(Protocol):
    """What can be said in both languages: small letters (nouns apart), no final mark, commas standing apart."""

    mark: ClassVar[str]
    """The punctuation at the end."""

    def english(self) -> str:
        """The English words."""

    def german(self) -> str:
        """The German words; commas may meet, or end the sentence."""


def render_sentence(sentence: Sentence) -> Pair:
    """The English and the German line."""
    return _written(sentence.english(), sentence.mark), _written(sentence.german(), sentence.mark)


def _written(words: str, mark: str) -> str:
    text = words.replace(" ,", ",").replace(",,", ",").rstrip(",")
    return f"{text[0].upper()}{text[1:]}{mark}"


@dataclass(slots=True)
class Statement:
    """ "Yesterday the man called me.", "Gestern rief der Mann mich an."."""

    clause: Clause
    mark: ClassVar[str] = "."

    def english(self) -> str:
        """The subject before the verb."""
        return self.clause.english()

    def german(self) -> str:
        """The verb second."""
        return self.clause.german("second")


@dataclass(slots=True)
class Question:
    """ "Why did the man call me?", "Warum rief der Mann mich an?"; `asked` is None for yes or no."""

    clause: Clause
    asked: Wording | None
    mark: ClassVar[str] = "?"

    def english(self) -> str:
        """An auxiliary before the subject."""
        return f"{self.asked.english if self.asked else ''} {self.clause.english(question=True)}".lstrip()

    def german(self) -> str:
        """The verb before the subject."""
        return f"{self.asked.german if self.asked else ''} {self.clause.german('first')}".lstrip()


@dataclass(slots=True)
class Complex:
    """ "The man is tired because he works.", "Der Mann ist müde, weil er arbeitet."; or `subordinate_first`."""

    main: Clause
    conjunction: Wording
    subordinate: Clause
    subordinate_first: bool
    mark: ClassVar[str] = "."

    def english(self) -> str:
        """A comma only after a subordinate clause."""
        subordinate = f"{self.conjunction.english} {self.subordinate.english()}"
        if self.subordinate_first:
            return f"{subordinate} , {self.main.english()}"
        return f"{self.main.english()} {subordinate}"

    def german(self) -> str:
        """A subordinate clause in front takes the first place, so the main verb follows at once."""
        subordinate = f"{self.conjunction.german} {self.subordinate.german('last')}"
        if self.subordinate_first:
            return f"{subordinate} , {self.main.german('first')}"
        return f"{self.main.german('second')} , {subordinate}"


@dataclass(slots=True)
class Compound:
    """ "The man works, but the dog sleeps.", "Der Mann arbeitet, aber der Hund schläft."."""

    first: Clause
    coordinator: Wording
    second: Clause
    mark: ClassVar[str] = "."

    def english(self) -> str:
        """Both clauses."""
        return f"{self.first.english()} {self.coordinator.english} {self.second.english()}"

    def german(self) -> str:
        """Both with the verb second."""
        return f"{self.first.german('second')} {self.coordinator.german} {self.second.german('second')}"


@dataclass(slots=True)
class Existence:
    """ "There is an old bridge in the village.", "Es gibt eine alte Brücke im Dorf."."""

    verb: Verb
    tense: str
    what: NounPhrase
    where: Prepositional
    where_first: bool
    mark: ClassVar[str] = "."

    def english(self) -> str:
        """ "be" agrees with what there is."""
        words = ["there", BE[self.tense][self.what.person], self.what.english("nominative")]
        words.insert(0 if self.where_first else len(words), self.where.english())
        return " ".join(words)

    def german(self) -> str:
        """ "es gibt" never changes, and takes the accusative."""
        finite = self.verb.german.finite[self.tense][2]
        where, what = self.where.german(), self.what.german("accusative")
        return f"{where} {finite} es {what}" if self.where_first else f"es {finite} {what} {where}"
