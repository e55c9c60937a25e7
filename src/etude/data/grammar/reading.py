"""Reading the entries of `lexicon.txt`; its head explains the notation."""

import re
from collections.abc import Iterator

from etude.data.grammar import english, german
from etude.data.grammar.chance import zipf
from etude.data.grammar.words import (
    Adjective,
    Classes,
    Determiner,
    Modal,
    Name,
    Noun,
    PersonalPronoun,
    Verb,
    Whereabouts,
    Wording,
)

_GENDER = {"der": "m", "die": "f", "das": "n"}
_PERSON = {"1 singular": 0, "2 singular": 1, "3 singular": 2, "1 plural": 3, "2 plural": 4, "3 plural": 5}
_WIDTH = 5


class Entries:
    """The lines of the file, section by section, split into columns.

    Attributes:
        groups: the classes that a class stands for
    """

    def __init__(self, text: str) -> None:
        self._sections: dict[str, list[list[str]]] = {}
        for line in text.splitlines():
            if line.startswith("["):
                section = self._sections.setdefault(line.strip("[]"), [])
            elif line and not line.startswith("#"):
                columns = [column.strip() for column in re.split(r"[;=]", line)]
                section.append(columns + [""] * (_WIDTH - len(columns)))
        self._groups = {name: members.split() for name, members, *_ in self._sections["groups"]}

    def of(self, kind: str) -> Iterator[tuple[str, int, list[str]]]:
        """(rest of the header, rank in the section, columns) for every line in the sections headed `kind ...`."""
        for header, lines in self._sections.items():
            first, _, rest = header.partition(" ")
            if first == kind:
                for rank, columns in enumerate(lines):
                    yield rest, rank, columns

    def classes(self, names: str) -> Classes:
        """The classes that are named, groups resolved."""
        return frozenset(member for name in names.split() for member in self._groups.get(name, [name]))


def nouns(entries: Entries) -> list[Noun]:
    """Every section "noun <class>"."""
    return [_noun(entries, *entry) for entry in entries.of("noun")]


def _noun(entries: Entries, section: str, rank: int, columns: list[str]) -> Noun:
    word, other, further, where, _ = columns
    singular, _, plural = word.partition("/")
    article, lemma, *rest = re.split(r" |, ", other)
    stem, _, weak_ending = lemma.partition("+")
    german_plural = rest[0] if rest else None
    return Noun(
        english=singular,
        plural=(plural or english.plural(singular)) if german_plural else None,
        german=german.noun(stem, weak_ending, german_plural),
        gender=_GENDER[article],
        classes=entries.classes(f"{section} {further}"),
        where=_whereabouts(where) if where else None,
        weight=zipf(rank),
    )


def _whereabouts(column: str) -> Whereabouts:
    (at, to), (wo, wohin) = (pair.split("/") for pair in column.split())
    return Whereabouts(Wording(at, wo), Wording(to, wohin))


def verbs(entries: Entries) -> list[Verb]:
    """Every section "verb <frame>"."""
    return [
        Verb(
            english=english.verb(word.lstrip("~!")),
            german=german.verb(other),
            frame=frame,
            subjects=entries.classes(subjects),
            objects=entries.classes(objects),
            places=entries.classes(places),
            lasting=word.startswith("~"),
            deliberate=word[0] not in "~!",
            weight=zipf(rank),
        )
        for frame, rank, (word, other, subjects, objects, places) in entries.of("verb")
    ]


def adjectives(entries: Entries) -> list[Adjective]:
    """The section "adjectives"; "teuer/teur": with and without ending."""
    read = []
    for _, rank, (word, other, classes, *_) in entries.of("adjectives"):
        predicate, _, stem = other.partition("/")
        forms = german.adjective(stem or predicate)
        lasting = word.startswith("~")
        read.append(Adjective(word.removeprefix("~"), predicate, forms, entries.classes(classes), lasting, zipf(rank)))
    return read


def names(entries: Entries) -> list[Name]:
    """The section "names"."""
    return [Name(word, gender) for _, _, (word, gender, *_) in entries.of("names")]


def pronouns(entries: Entries, section: str) -> list[PersonalPronoun]:
    """Forms by case, "|" for a space within one; then person, number and gender."""
    read = []
    for _, _, (word, other, features, *_) in entries.of(section):
        ours, theirs = (
            {case: form.replace("|", " ") for case, form in zip(german.CASES, column.split(), strict=True)}
            for column in (word, other)
        )
        person, number, *gender = features.split()
        read.append(PersonalPronoun(ours, theirs, _PERSON[f"{person} {number}"], *(gender or ["plural"])))
    return read


def determiners(entries: Entries, section: str) -> list[Determiner]:
    """ "this/these ; dies weak ; definite"; "-" where English has no such number."""
    read = []
    for _, _, (word, other, features, *_) in entries.of(section):
        singular, plural = (None if form == "-" else form for form in word.split("/"))
        stem, declension = other.split()
        forms = german.determiner(stem, declension)
        definite, possessive = "definite" in features, "possessive" in features
        read.append(Determiner(singular, plural, forms, declension, definite, possessive, stem == "kein"))
    return read


def modals(entries: Entries) -> list[Modal]:
    """ "können kann konnte", or one form alone where past and present are the same mood: "sollte"."""
    read = []
    for section in ("auxiliaries", "semi-modals"):
        for _, _, (word, other, *_) in entries.of(section):
            infinitive, *forms = other.split()
            finite = (
                {"present": german.present(infinitive, forms[0])}
                if forms
                else {"present": german.preterite(infinitive)}
            )
            if len(forms) == 2:
                finite["past"] = german.preterite(forms[1])
            head, _, rest = word.partition(" ")
            if section == "auxiliaries":
                read.append(Modal(tuple(head.split("/")), None, rest, finite))
            else:
                read.append(Modal((), english.verb(word), rest, finite))
    return read


def wordings(entries: Entries, section: str) -> list[Wording]:
    """Words without inflection; the third column holds tenses, or classes."""
    return [Wording(word, other, entries.classes(third)) for _, _, (word, other, third, *_) in entries.of(section)]
