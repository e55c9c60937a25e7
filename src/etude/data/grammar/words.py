"""What the grammar knows of a word: one class for each kind of entry in `lexicon.txt`, with every form it needs."""

from collections.abc import Mapping
from dataclasses import dataclass

from etude.data.grammar.english import EnglishVerb
from etude.data.grammar.german import Forms, GermanVerb

Classes = frozenset[str]
"""The classes of things that a word belongs to ("animal"), applies to or takes; or tenses that it goes with."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Words that never change, and what they go with: tenses, or classes of nouns."""

    english: str
    german: str
    goes_with: Classes = frozenset()


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The prepositions of a place: where something is ("at", "an") and where it goes ("to", "zu")."""

    at: Wording
    to: Wording


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun; `plural` is None for a mass noun, `german` maps (is plural, case) to a form."""

    english: str
    plural: str | None
    german: Mapping[tuple[bool, str], str]
    gender: str
    classes: Classes
    where: Whereabouts | None
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb, and the classes it takes as subject, object and place.

    Attributes:
        frame: the section it stands in
        lasting: a state, which has no progressive
        deliberate: done in some manner
    """

    english: EnglishVerb
    german: GermanVerb
    frame: str
    subjects: Classes
    objects: Classes
    places: Classes
    lasting: bool
    deliberate: bool
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A modal; in English an `auxiliary` (its present and past) or a `verb`, then `rest` ("like to", "to" or "").

    `german` holds the six forms of "present" and, where there is one, of "past".
    """

    auxiliary: tuple[str, ...]
    verb: EnglishVerb | None
    rest: str
    german: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective; `predicate` is the German form without ending, `german` maps declension to the forms with one."""

    english: str
    predicate: str
    german: Mapping[str, Forms]
    classes: Classes
    lasting: bool
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class PersonalPronoun:
    """A pronoun: its forms by case, the index of its verb form, and its gender where it has one."""

    english: Mapping[str, str]
    german: Mapping[str, str]
    person: int
    gender: str


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A first name, the same in both languages."""

    text: str
    gender: str


@dataclass(frozen=True, slots=True, eq=False)
class Determiner:
    """An article or what stands in its place.

    Attributes:
        singular, plural: in English; None where it has no such number, "" where English says nothing
        german: form by agreement and case
        declension: that of the adjective that follows in German
        definite: whether it points to something known
        possessive: whether it tells whose it is
        negative: whether it is German "kein", so that the clause needs no "nicht"
    """

    singular: str | None
    plural: str | None
    german: Forms
    declension: str
    definite: bool
    possessive: bool
    negative: bool
