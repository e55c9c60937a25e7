"""Relative clauses: "the man who sleeps", "der Freund, auf den er wartet"."""

from etude.data.grammar import german
from etude.data.grammar.clauses import Clause
from etude.data.grammar.phrases import NounPhrase, Phrase, object_case


class RelativePronoun(Phrase):
    """ "who", "that"; German repeats gender and number of what it describes: "der", "denen"."""

    def __init__(self, head: NounPhrase) -> None:
        self.person, self.gender, self.classes = head.person, head.gender, head.classes

    def english(self, case: str) -> str:
        """ "who" for persons as subjects, else "that"."""
        return "who" if "person" in self.classes and case == "nominative" else "that"

    def german(self, case: str) -> str:
        """A form of "der", "die", "das"."""
        return german.RELATIVE[self.gender, case]


class RelativeClause:
    """What is told of a noun: `clause` has its subject replaced by `pronoun`, or lacks the object that `verb` takes."""

    def __init__(self, pronoun: RelativePronoun, clause: Clause) -> None:
        self.pronoun, self.clause = pronoun, clause

    def english(self) -> str:
        """ "who sleeps", "that he waits for"."""
        if self.clause.subject is self.pronoun:
            return self.clause.english()
        return f"{self.pronoun.english('accusative')} {self.clause.english()}"

    def german(self) -> str:
        """ "der schläft", "auf den er wartet": the verb stands last."""
        if self.clause.subject is self.pronoun:
            return self.clause.german("last")
        preposition, case = object_case(self.clause.verb)
        return f"{preposition} {self.pronoun.german(case)} {self.clause.german('last')}".lstrip()
