"""Clauses and sentences: one meaning, said in English word order and in the three orders of German.

German puts the finite verb second in a main clause, first in a question, last in a subordinate clause; whatever else
belongs to the verb (a prefix, a participle, an infinitive) closes the clause. A clause has small letters (nouns apart),
and its commas stand apart; they may meet, or end it.
"""

from dataclasses import dataclass
from typing import Literal

from etude.data.corpus import Pair
from etude.data.grammar import german
from etude.data.grammar.english import BE
from etude.data.grammar.words import Modal, Phrase, Verb, Wording, prepositional

Order = Literal["second", "first", "last"]
"""Where the finite verb stands in German."""

_HABEN = {"haben": german.verb("haben hat hatte gehabt"), "sein": german.verb("sein ist war gewesen")}
_WERDEN = german.verb("werden wird wurde geworden")
_HAVE = ("have", "have", "has", "have", "have", "have")
_DO = {"present": ("do", "do", "does", "do", "do", "do"), "past": ("did",) * 6}


@dataclass(frozen=True, slots=True)
class Tense:
    """When, and how English and German say it."""

    name: str  # "present", "progressive", "past", "perfect" or "future"; with a modal "present" or "past"
    modal: Modal | None = None

    @property
    def company(self) -> str:
        """What adverbs of time call it: "modal" for the present of a modal."""
        return "modal" if self.modal and self.name == "present" else self.name


@dataclass(slots=True)
class Clause:
    """Who does what, to whom, when, where and how."""

    subject: Phrase
    verb: Verb
    tense: Tense
    negative: bool = False
    recipient: Phrase | None = None  # a dative object beside the other one
    object: Phrase | None = None  # the one object of most verbs
    predicate: Wording | None = None  # what "be" says of the subject: "very old", "sehr alt"
    frequency: Wording | None = None  # an adverb that English puts before the verb: "often"
    manner: Wording | None = None
    goal: Wording | None = None  # the place that the verb cannot do without: where to, or where
    company: Wording | None = None  # "with her dog"
    place: Wording | None = None  # any other
    time: Wording | None = None
    fronted: bool = False  # whether the time stands first
    lasting: bool = False  # whether it has no time
    told: Wording | None = None  # a clause that the verb reports, after its conjunction

    # ------------------------------------------------------------------------------------------------- English

    def english(self, question: bool = False) -> str:
        """[time] subject [auxiliary] [not] [often] verb objects goal manner company place [time]."""
        auxiliary, main = self._english_verb(question or self.negative)
        negation = "not" if self.negative else ""
        if negation and auxiliary == "can" and not question:
            auxiliary, negation = "cannot", ""
        subject = [self.subject.english["nominative"], *_english(self.subject.relative)]
        words = [auxiliary, *subject] if question else [*subject, auxiliary]
        words += [negation, *_english(self.frequency), main, *self._english_objects()]
        words += _english(self.predicate, self.goal, self.manner, self.company, self.place)
        time = _english(self.time)
        words = [*time, *words] if self.fronted else [*words, *time]
        return " ".join(filter(None, [*words, *_english(self.told)]))

    def _english_verb(self, needs_auxiliary: bool) -> tuple[str, str]:
        """The auxiliary, or "", and the rest of the verb; negation and questions need an auxiliary."""
        verb, person, tense, modal = self.verb.english, self.subject.person, self.tense.name, self.tense.modal
        if modal and modal.is_auxiliary:
            return modal.english.finite(tense, person), f"{modal.english.rest} {verb.base}".lstrip()
        match tense:
            case "perfect":
                return _HAVE[person], verb.participle
            case "future":
                return "will", verb.base
            case "progressive":
                return BE["present"][person], verb.gerund
        lead, rest = (modal.english, f" {modal.english.rest} {verb.base}") if modal else (verb, "")
        if lead.base == "be":
            return lead.finite(tense, person), ""
        if needs_auxiliary:
            return _DO[tense][person], lead.base + rest
        return "", lead.finite(tense, person) + rest

    def _english_objects(self) -> list[str]:
        objects = [phrase.english["dative"] for phrase in (self.recipient, self.object) if phrase]
        verb = self.verb.english
        comes_last = verb.movable and self.object is not None and self.object.is_pronoun
        objects.insert(len(objects) if comes_last else 0, verb.rest)
        return [*objects, *_english(self.object.relative if self.object else None)]

    # -------------------------------------------------------------------------------------------------- German

    def german(self, order: Order) -> str:
        """The clause with its finite verb `order`; a relative clause of the object follows at the end."""
        finite, rest = self._german_verb(order)
        subject = [self.subject.german["nominative"]]
        if self.subject.relative:
            subject.append(f", {self.subject.relative.german} ,")
        middle = self._middle_field()
        if order == "last":
            words = [*subject, *middle, rest, finite]
        elif order == "first":
            words = [finite, *subject, *middle, rest]
        elif self.time and self.fronted:
            words = [self.time.german, finite, *subject, *middle, rest]
        else:
            words = [*subject, finite, *middle, rest]
        if self.object and self.object.relative:
            words.append(f", {self.object.relative.german} ,")
        if self.told:
            words.append(f", {self.told.german}")
        return " ".join(filter(None, words))

    def _german_verb(self, order: Order) -> tuple[str, str]:
        """The finite form, and what closes the clause."""
        verb, tense, person = self.verb.german, self.tense, self.subject.person
        if tense.modal:
            return tense.modal.german[tense.name][person], verb.infinitive
        if tense.name == "perfect":
            return _HABEN[verb.auxiliary].finite["present"][person], verb.participle
        if tense.name == "future":
            return _WERDEN.finite["present"][person], verb.infinitive
        finite = verb.finite["past" if tense.name == "past" else "present"][person]
        return (verb.prefix + finite, "") if order == "last" else (finite, verb.prefix)

    def _middle_field(self) -> list[str]:
        """Between the parts of the verb: pronouns, time, what is known, "nicht", how, what is new, where."""
        preposition, case = self.verb.object_case
        pronouns: list[str] = []
        known: list[str] = []
        new: list[str] = []
        last = self.predicate
        if self.recipient:
            (pronouns if self.recipient.is_pronoun else known).append(self.recipient.german["dative"])
        if self.object and preposition:
            last = prepositional(Wording("", preposition), case, self.object)
        elif self.object:
            group = pronouns if self.object.is_pronoun else known if self.object.definite else new
            group.append(self.object.german[case])
        negation = ["nicht"] if self.negative and not (self.object and self.object.negative) else []
        before = _german(None if self.fronted else self.time, self.frequency)
        after = _german(self.company, self.place, self.goal, last)
        return [*pronouns, *before, *known, *negation, *_german(self.manner), *new, *after]


def _english(*parts: Wording | None) -> list[str]:
    return [part.english for part in parts if part]


def _german(*parts: Wording | None) -> list[str]:
    return [part.german for part in parts if part]


def subordinate(conjunction: Wording, clause: Clause) -> Wording:
    """ "because he works", "weil er arbeitet"."""
    return Wording(f"{conjunction.english} {clause.english()}", f"{conjunction.german} {clause.german('last')}")


def relative_clause(pronoun: Phrase, clause: Clause) -> Wording:
    """What is told of a noun: `clause` has its subject replaced by `pronoun`, or lacks the object that its verb takes.

    "who sleeps", "der schläft"; "that he waits for", "auf den er wartet".
    """
    ours, theirs = clause.english(), clause.german("last")
    if clause.subject is pronoun:
        return Wording(ours, theirs)
    preposition, case = clause.verb.object_case
    return Wording(f"{pronoun.english['accusative']} {ours}", f"{preposition} {pronoun.german[case]} {theirs}".lstrip())


def write_sentence(english: str, german: str, mark: str = ".") -> Pair:
    """The two lines: a capital, commas in their places, and a mark at the end."""
    ours, theirs = (words.replace(" ,", ",").replace(",,", ",").rstrip(",") for words in (english, german))
    return f"{ours[0].upper()}{ours[1:]}{mark}", f"{theirs[0].upper()}{theirs[1:]}{mark}"


def statement(clause: Clause) -> Pair:
    """ "Yesterday the man called me.", "Gestern rief der Mann mich an."."""
    return write_sentence(clause.english(), clause.german("second"))


def question(clause: Clause, asked: Wording | None = None) -> Pair:
    """ "Why did the man call me?", "Warum rief der Mann mich an?"; nothing is `asked` for yes or no."""
    ours, theirs = [*_english(asked), clause.english(question=True)], [*_german(asked), clause.german("first")]
    return write_sentence(" ".join(ours), " ".join(theirs), "?")


def with_subordinate(main: Clause, conjunction: Wording, clause: Clause, first: bool = False) -> Pair:
    """ "The man is tired because he works.", "Der Mann ist müde, weil er arbeitet."; or the subordinate clause `first`.

    Then the German main verb follows it at once. English has a comma only there.
    """
    because = subordinate(conjunction, clause)
    if first:
        return write_sentence(f"{because.english} , {main.english()}", f"{because.german} , {main.german('first')}")
    return write_sentence(f"{main.english()} {because.english}", f"{main.german('second')} , {because.german}")


def compound(first: Clause, coordinator: Wording, second: Clause) -> Pair:
    """ "The man works, but the dog sleeps.", "Der Mann arbeitet, aber der Hund schläft."."""
    return write_sentence(
        f"{first.english()} {coordinator.english} {second.english()}",
        f"{first.german('second')} {coordinator.german} {second.german('second')}",
    )


def existence(verb: Verb, tense: str, what: Phrase, where: Wording, where_first: bool) -> Pair:
    """ "There is an old bridge in the village.", "Es gibt eine alte Brücke im Dorf.".

    "Be" agrees with what there is; "es gibt" never changes, and takes the accusative.
    """
    be, finite = BE[tense][what.person], verb.german.finite[tense][2]
    ours, theirs = what.english["nominative"], what.german["accusative"]
    if where_first:
        return write_sentence(f"{where.english} there {be} {ours}", f"{where.german} {finite} es {theirs}")
    return write_sentence(f"there {be} {ours} {where.english}", f"es {finite} {theirs} {where.german}")
