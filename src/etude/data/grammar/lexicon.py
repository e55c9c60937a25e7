"""The lexicon as a whole."""

from functools import cache
from importlib.resources import files

from etude.data.grammar import reading
from etude.data.grammar.words import Verb

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
    "reporters",
    "interrogatives",
)
"""The sections of words without inflection."""


def text() -> str:
    """What stands in `lexicon.txt`."""
    return files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8")


@cache
def shipped() -> "Lexicon":
    """The lexicon of `lexicon.txt`."""
    return Lexicon(text())


class Lexicon:
    """The words of every kind, in the order of the file.

    Attributes:
        the, a: the two articles
        negations: what becomes of "a" under negation ("not ... a", German "kein"), and "no"
        impersonal: "it", by the German gender of what it stands for
        own: the classes of what people call theirs
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
        self.the, self.a = self.determiners[:2]
        self.negations = reading.determiners(entries, "negations")
        self.modals = reading.modals(entries)
        self.own = entries.classes("own")
        self.plain = {section: reading.wordings(entries, section) for section in PLAIN}

    def verbs_of(self, frame: str) -> list[Verb]:
        """The verbs of one section."""
        return [verb for verb in self.verbs if verb.frame == frame]
