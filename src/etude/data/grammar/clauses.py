"""Clauses: one meaning, said in English word order and in the three orders of German.

German puts the finite verb second in a main clause, first in a question, last in a subordinate clause; whatever else
belongs to the verb (a prefix, a participle, an infinitive) closes the clause.
"""

from dataclasses import dataclass
from typing import Literal

from etude.data.grammar import german
from etude.data.grammar.english import BE, EnglishVerb
from etude.data.grammar.phrases import Phrase, Prepositional, attached, object_case
from etude.data.grammar.words import Modal, Verb, Wording

Order = Literal["second", "first", "last"]
"""Where the finite verb stands in German."""

_HABEN = {"haben": german.verb("haben hat hatte gehabt"), "sein": german.verb("sein ist war gewesen")}
_WERDEN = german.verb("werden wird wurde geworden")
_HAVE = ("have", "have", "has", "have", "have", "have")
_DO = {"present": ("do", "do", "does", "do", "do", "do"), "past": ("did",) * 6}


@dataclass(frozen=True, slots=True)
class Tense:
    """When, and how English and German say it.

    Attributes:
        name: "present", "progressive", "past", "perfect" or "future"; with a modal "present" or "past"
        modal: "can", "können"
    """

    name: str
    modal: Modal | None = None

    @property
    def company(self) -> str:
        """What adverbs of time call it: "modal" for the present of a modal."""
        return "modal" if self.modal and self.name == "present" else self.name


@dataclass(slots=True)
class Clause:
    """Who does what, to whom, when, where and how.

    Attributes:
        recipient: a dative object beside the other one
        object: the one object of most verbs
        predicate: what "be" says of the subject: "very old", "sehr alt"
        frequency: an adverb that English puts before the verb: "often"
        company: "with her dog"
        goal: the place that the verb cannot do without: where to, or where
        place: any other
        fronted: whether the time stands first
        lasting: whether it has no time
        told: a clause that the verb reports, after its conjunction
    """

    subject: Phrase
    verb: Verb
    tense: Tense
    negative: bool = False
    recipient: Phrase | None = None
    object: Phrase | None = None
    predicate: Wording | None = None
    frequency: Wording | None = None
    manner: Wording | None = None
    goal: Prepositional | None = None
    company: Prepositional | None = None
    place: Prepositional | None = None
    time: Wording | None = None
    fronted: bool = False
    lasting: bool = False
    told: "tuple[Wording, Clause] | None" = None

    # ------------------------------------------------------------------------------------------------- English

    def english(self, question: bool = False) -> str:
        """[time] subject [auxiliary] [not] [often] verb objects goal manner company place [time]."""
        auxiliary, main = self._english_verb(question or self.negative)
        subject = [self.subject.english("nominative")]
        if self.subject.relative:
            subject.append(self.subject.relative.english())
        words = [auxiliary, *subject] if question else [*subject, auxiliary]
        if self.negative:
            if auxiliary == "can" and not question:
                words[-1] = "cannot"
            else:
                words.append("not")
        if self.frequency:
            words.append(self.frequency.english)
        words.append(main)
        words += self._english_objects()
        if self.predicate:
            words.append(self.predicate.english)
        if self.goal:
            words.append(self.goal.english())
        if self.manner:
            words.append(self.manner.english)
        words += [part.english() for part in (self.company, self.place) if part]
        if self.time:
            words.insert(0 if self.fronted else len(words), self.time.english)
        if self.told:
            words += [self.told[0].english, self.told[1].english()]
        return " ".join(filter(None, words))

    def _english_verb(self, needs_auxiliary: bool) -> tuple[str, str]:
        """The auxiliary, or "", and the rest of the verb; negation and questions need an auxiliary."""
        verb, person = self.verb.english, self.subject.person
        modal = self.tense.modal
        if modal and modal.verb is None:
            return modal.auxiliary[self.tense.name == "past"], f"{modal.rest} {verb.base}".lstrip()
        match self.tense.name:
            case "perfect":
                return _HAVE[person], verb.participle
            case "future":
                return "will", verb.base
            case "progressive":
                return BE["present"][person], verb.gerund
        rest = f" {modal.rest} {verb.base}" if modal else ""
        lead: EnglishVerb = modal.verb if modal and modal.verb else verb
        if lead.base == "be":
            return lead.finite(self.tense.name, person), ""
        if needs_auxiliary:
            return _DO[self.tense.name][person], lead.base + rest
        return "", lead.finite(self.tense.name, person) + rest

    def _english_objects(self) -> list[str]:
        objects = [phrase.english("dative") for phrase in (self.recipient, self.object) if phrase]
        verb = self.verb.english
        if verb.rest:
            comes_last = verb.movable and self.object is not None and self.object.is_pronoun
            objects.insert(len(objects) if comes_last else 0, verb.rest)
        if self.object and self.object.relative:
            objects.append(self.object.relative.english())
        return objects

    # -------------------------------------------------------------------------------------------------- German

    def german(self, order: Order) -> str:
        """The clause with its finite verb `order`; a relative clause of the object follows at the end."""
        finite, rest = self._german_verb(order)
        subject = [self.subject.german("nominative")]
        if self.subject.relative:
            subject.append(f", {self.subject.relative.german()} ,")
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
            words.append(f", {self.object.relative.german()} ,")
        if self.told:
            words.append(f", {self.told[0].german} {self.told[1].german('last')}")
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
        preposition, case = object_case(self.verb)
        pronouns: list[str] = []
        known: list[str] = []
        new: list[str] = []
        if self.recipient:
            (pronouns if self.recipient.is_pronoun else known).append(self.recipient.german("dative"))
        if self.object and not preposition:
            group = pronouns if self.object.is_pronoun else known if self.object.definite else new
            group.append(self.object.german(case))
        words = pronouns
        if self.time and not self.fronted:
            words.append(self.time.german)
        if self.frequency:
            words.append(self.frequency.german)
        words += known
        if self.negative and not (self.object and self.object.negative):
            words.append("nicht")
        if self.manner:
            words.append(self.manner.german)
        words += new
        words += [part.german() for part in (self.company, self.place, self.goal) if part]
        if preposition and self.object:
            words.append(attached(preposition, self.object, case))
        if self.predicate:
            words.append(self.predicate.german)
        return words
