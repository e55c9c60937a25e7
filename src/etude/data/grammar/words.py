"""Words and phrases: one class for each kind of entry in `lexicon.txt`, with all its forms.

A phrase has forms by case, in English too: "he" is the nominative, "him" is any other case.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from etude.data.grammar import english, german
from etude.data.grammar.brackets import bracket
from etude.data.grammar.english import THIRD_PLURAL, THIRD_SINGULAR, EnglishVerb
from etude.data.grammar.german import CASES, Forms, GermanVerb

Classes = frozenset[str]
"""Classes of things ("animal") that a word belongs to, applies to or takes; or tenses that it goes with."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Uninflected words, and what they go with: tenses, or classes of nouns. English phrases have brackets."""

    english: str
    german: str
    goes_with: Classes = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun."""

    english: str
    plural: str | None  # in English; None for a mass noun
    german: Mapping[tuple[bool, str], str]  # (is plural, case) -> form
    gender: str
    classes: Classes
    places: Mapping[str, Wording]  # "at" -> the preposition for being there, "to" -> the one for going there
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb, and the classes it takes as subject, object and place."""

    english: EnglishVerb
    german: GermanVerb
    frame: str  # its section in the lexicon
    subjects: Classes
    objects: Classes
    places: Classes
    lasting: bool  # whether it is a state, which has no progressive
    deliberate: bool  # whether it can have an adverb of manner
    weight: float

    @property
    def object_case(self) -> tuple[str, str]:
        """The (preposition or "", case) of the object in German."""
        return self.german.preposition or ("", "dative" if self.frame == "dative" else "accusative")


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A modal: in English an auxiliary or a verb; in German six forms of "present" and perhaps of "past"."""

    english: EnglishVerb
    is_auxiliary: bool
    german: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective; in German the predicative form, which has no ending, and the stem that takes endings."""

    english: str
    predicate: str
    stem: str
    classes: Classes
    lasting: bool
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Determiner:
    """An article, or a word in its place."""

    singular: str | None  # in English; None if it has no singular, "" if English has no word
    plural: str | None
    german: Forms
    declension: str  # of a following adjective in German
    definite: bool  # whether it refers to something known
    possessive: bool
    negative: bool  # whether it is German "kein", so that the clause needs no "nicht"


@dataclass(eq=False)
class Phrase:
    """A subject or an object: a pronoun, a name, or a `NounPhrase`."""

    english: Mapping[str, str]  # case -> words, without the relative clause
    german: Mapping[str, str]
    person: int  # the index of the verb form that agrees with it
    gender: str  # the agreement of a German pronoun that refers to it: "m", "f", "n" or "plural"
    classes: Classes = frozenset({"person", "adult"})
    is_pronoun: bool = False  # in German, pronouns come early in the clause
    definite: bool = True  # whether it refers to something known; German "nicht" follows only such objects
    negative: bool = False  # whether it has "kein"
    relative: Wording | None = None  # a relative clause; the surrounding clause places it

    def english_tree(self, case: str) -> str:
        """Make the tree: "(NP the dog )", "(NP (NP the dog ) (SBAR (WHNP that ) (S ... ) ) )"."""
        words = bracket("NP", self.english[case])
        return bracket("NP", words, self.relative.english) if self.relative else words


class NounPhrase(Phrase):
    """A noun phrase such as "these two old dogs", "Anna's book", "cold water".

    Args:
        noun: the head
        plural: whether it is plural
        determiner: None if there is a number, an owner or nothing in its place
        owner: the possessor
        number: a numeral, 0 for none
        adjective: before the noun
    """

    def __init__(
        self,
        noun: Noun,
        plural: bool = False,
        determiner: Determiner | None = None,
        owner: Phrase | None = None,
        number: int = 0,
        adjective: Adjective | None = None,
    ) -> None:
        self.noun, self.plural, self.determiner = noun, plural, determiner
        self.owner, self.number, self.adjective = owner, number, adjective
        gender = "plural" if plural else noun.gender
        super().__init__(
            english=dict.fromkeys(CASES, self._english()),
            german={case: self._german(gender, case) for case in CASES},
            person=THIRD_PLURAL if plural else THIRD_SINGULAR,
            gender=gender,
            classes=noun.classes,
            definite=owner is not None or (determiner is not None and determiner.definite),
            negative=determiner is not None and determiner.negative,
        )

    def _english(self) -> str:
        """Join determiner or owner, number, adjective and noun."""
        words = [english.numeral(self.number)] if self.number else []
        if self.adjective:
            words.append(self.adjective.english)
        words.append((self.noun.plural or "") if self.plural else self.noun.english)
        first = self.determiner and (self.determiner.plural if self.plural else self.determiner.singular)
        if self.owner:
            first = bracket("NP", self.owner.english["nominative"], "'s")
        elif first == "a" and not self.plural:
            first = english.article(words[0]) if self.noun.plural else ""
        return " ".join([first, *words] if first else words)

    def _german(self, gender: str, case: str) -> str:
        """Join them in the same order; the adjective's ending depends on the word before it."""
        words = []
        declension = "strong"
        if self.owner:
            words.append(f"{self.owner.german['nominative']}s")
        elif self.determiner:
            words.append(self.determiner.german[gender, case])
            declension = self.determiner.declension
        if self.number:
            words.append(german.numeral(self.number))
        if self.adjective:
            words.append(self.adjective.stem + german.ADJECTIVE_ENDINGS[declension][gender, case])
        words.append(self.noun.german[self.plural, case])
        return " ".join(words)


def relative_pronoun(head: Phrase) -> Phrase:
    """Make a relative pronoun: "who" for persons as subjects, else "that"; in German it agrees with the head."""
    who = "who" if "person" in head.classes else "that"
    return Phrase(
        english=dict.fromkeys(CASES, "that") | {"nominative": who},
        german={case: german.RELATIVE[head.gender, case] for case in CASES},
        person=head.person,
        gender=head.gender,
        classes=head.classes,
    )


def prepositional(wording: Wording, case: str, phrase: Phrase) -> Wording:
    """Join a preposition and a phrase: "in the garden", "im Garten"; some German articles contract with it."""
    article, space, rest = phrase.german[case].partition(" ")
    both = f"{wording.german} {article}"
    ours = bracket("PP", wording.english, phrase.english_tree(case))
    return Wording(ours, german.CONTRACTIONS.get(both, both) + space + rest)
