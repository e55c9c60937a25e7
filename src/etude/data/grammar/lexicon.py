"""Read the lexicon from `lexicon.txt`, whose first lines explain the notation."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from etude.data.grammar import english, german
from etude.data.grammar.chance import zipf
from etude.data.grammar.words import Adjective, Classes, Determiner, Modal, Noun, Phrase, Verb, Wording

_PLAIN = [
    "degrees", "times", "spans", "frequencies", "manners", "companions", "positions", "conjunctions", "coordinators",
    "reporters", "interrogatives",
]  # fmt: skip
"""The sections of uninflected words."""
_GENDER = {"der": "m", "die": "f", "das": "n"}
_PERSON = {"1 singular": 0, "2 singular": 1, "3 singular": 2, "1 plural": 3, "2 plural": 4, "3 plural": 5}
_WIDTH = 5  # columns

Columns = list[str]


@cache
def shipped() -> "Lexicon":
    """Read the lexicon that is shipped with this package."""
    return Lexicon(files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8"))


class Lexicon:
    """The words of every kind, in the order of the file.

    Attributes:
        the, a: the two articles
        negations: "a" under negation ("not ... a", German "kein"), and "no"
        impersonal: "it", by the German gender of the noun that it refers to
        own: the classes of nouns that can have an owner
        plain: section -> uninflected words
    """

    def __init__(self, text: str) -> None:
        self._sections: dict[str, list[Columns]] = {}
        for line in text.splitlines():
            if line.startswith("["):
                section = self._sections.setdefault(line.strip("[]"), [])
            elif line and not line.startswith("#"):
                columns = [column.strip() for column in re.split(r"[;=]", line)]
                section.append(columns + [""] * (_WIDTH - len(columns)))
        lines = self._sections.__getitem__
        self._groups = {name: members.split() for name, members, *_ in lines("groups")}
        self.own = self._classes("own")
        self.nouns = [self._noun(*entry) for entry in self._entries("noun")]
        self.verbs = [self._verb(*entry) for entry in self._entries("verb")]
        self.adjectives = [self._adjective(rank, columns) for _, rank, columns in self._entries("adjectives")]
        self.names = [_name(columns) for columns in lines("names")]
        self.pronouns = [_pronoun(columns) for columns in lines("pronouns")]
        self.impersonal = {word.gender: word for word in map(_pronoun, lines("impersonal"))}
        self.determiners = [_determiner(columns) for columns in lines("determiners")]
        self.the, self.a = self.determiners[:2]
        self.negations = [_determiner(columns) for columns in lines("negations")]
        self.modals = [
            *(Modal(english.auxiliary(ours), True, german.modal(theirs)) for ours, theirs, *_ in lines("auxiliaries")),
            *(Modal(english.verb(ours), False, german.modal(theirs)) for ours, theirs, *_ in lines("semi-modals")),
        ]
        self.plain = {
            section: [Wording(ours, theirs, self._classes(company)) for ours, theirs, company, *_ in lines(section)]
            for section in _PLAIN
        }

    def verbs_of(self, frame: str) -> list[Verb]:
        """Return the verbs of one section."""
        return [verb for verb in self.verbs if verb.frame == frame]

    def _entries(self, kind: str) -> Iterator[tuple[str, int, Columns]]:
        """Yield (rest of the header, rank in the section, columns) for every line of the sections `[kind ...]`."""
        for header, lines in self._sections.items():
            first, _, rest = header.partition(" ")
            if first == kind:
                for rank, columns in enumerate(lines):
                    yield rest, rank, columns

    def _classes(self, names: str) -> Classes:
        """Parse names of classes; a group is replaced by its members."""
        return frozenset(member for name in names.split() for member in self._groups.get(name, [name]))

    def _noun(self, section: str, rank: int, columns: Columns) -> Noun:
        ours, theirs, further, where, _ = columns
        singular, _, plural = ours.partition("/")
        article, lemma, *rest = re.split(r" |, ", theirs)
        stem, _, weak_ending = lemma.partition("+")
        german_plural = rest[0] if rest else None
        places = {}
        if where:
            (at, to), (wo, wohin) = (side.split("/") for side in where.split())
            places = {"at": Wording(at, wo), "to": Wording(to, wohin)}
        return Noun(
            english=singular,
            plural=(plural or english.plural(singular)) if german_plural else None,
            german=german.noun(stem, weak_ending, german_plural),
            gender=_GENDER[article],
            classes=self._classes(f"{section} {further}"),
            places=places,
            weight=zipf(rank),
        )

    def _verb(self, frame: str, rank: int, columns: Columns) -> Verb:
        ours, theirs, subjects, objects, places = columns
        return Verb(
            english=english.verb(ours.lstrip("~!")),
            german=german.verb(theirs),
            frame=frame,
            subjects=self._classes(subjects),
            objects=self._classes(objects),
            places=self._classes(places),
            lasting=ours.startswith("~"),
            deliberate=ours[0] not in "~!",
            weight=zipf(rank),
        )

    def _adjective(self, rank: int, columns: Columns) -> Adjective:
        ours, theirs, classes, *_ = columns
        predicate, _, stem = theirs.partition("/")
        lasting = ours.startswith("~")
        return Adjective(
            ours.removeprefix("~"), predicate, stem or predicate, self._classes(classes), lasting, zipf(rank)
        )


def _name(columns: Columns) -> Phrase:
    """Make a first name, which is the same in both languages and all cases."""
    name, gender, *_ = columns
    forms = dict.fromkeys(german.CASES, name)
    return Phrase(forms, forms, english.THIRD_SINGULAR, gender)


def _pronoun(columns: Columns) -> Phrase:
    """Parse a pronoun: its forms by case, with "|" for a space within a form; then person, number and gender."""
    ours, theirs = (
        {case: form.replace("|", " ") for case, form in zip(german.CASES, column.split(), strict=True)}
        for column in columns[:2]
    )
    person, number, *gender = columns[2].split()
    return Phrase(ours, theirs, _PERSON[f"{person} {number}"], gender[0] if gender else "plural", is_pronoun=True)


def _determiner(columns: Columns) -> Determiner:
    """Parse a determiner: "this/these ; dies weak ; definite"; "-" if English has no form for a number."""
    ours, theirs, features, *_ = columns
    singular, plural = (None if form == "-" else form for form in ours.split("/"))
    stem, declension = theirs.split()
    forms = german.determiner(stem, declension)
    return Determiner(
        singular, plural, forms, declension, "definite" in features, "possessive" in features, stem == "kein"
    )
