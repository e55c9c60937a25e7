"""Clauses and sentences: express one meaning in English, as a tree, and in the three word orders of German.

German has the finite verb second in a main clause, first in a question, last in a subordinate clause; the rest of the
verb (a prefix, a participle, an infinitive) ends the clause. A clause is in lower case except for German nouns, and its
commas are separate words; two may be adjacent, or one may end the clause.
"""

from dataclasses import dataclass, replace
from typing import Literal

from etude.data.grammar import german
from etude.data.grammar.brackets import adverbial, bracket, close_sentence, inside, verb_phrase
from etude.data.grammar.english import BE
from etude.data.grammar.words import Modal, Phrase, Verb, Wording, prepositional

Pair = tuple[str, str]
"""An English tree and a German line."""

Order = Literal["second", "first", "last"]
"""The position of the finite verb in German."""

_HABEN = {"haben": german.verb("haben hat hatte gehabt"), "sein": german.verb("sein ist war gewesen")}
_WERDEN = german.verb("werden wird wurde geworden")
_HAVE = ("have", "have", "has", "have", "have", "have")
_PREPOSITIONS = {"about", "at", "for", "of", "to", "with"}  # that may follow a verb; other words there are particles
_DO = {"present": ("do", "do", "does", "do", "do", "do"), "past": ("did",) * 6}


@dataclass(frozen=True, slots=True)
class Tense:
    """The tense of a clause, with a modal verb if there is one."""

    name: str  # "present", "progressive", "past", "perfect" or "future"; with a modal "present" or "past"
    modal: Modal | None = None

    @property
    def company(self) -> str:
        """The name in the lexicon's adverbs of time: "modal" for the present of a modal."""
        return "modal" if self.modal and self.name == "present" else self.name


@dataclass(slots=True)
class Clause:
    """The meaning of a clause: who does what, to whom, when, where and how."""

    subject: Phrase
    verb: Verb
    tense: Tense
    negative: bool = False
    recipient: Phrase | None = None  # a dative object in addition to `object`
    object: Phrase | None = None  # the only object of most verbs
    predicate: Wording | None = None  # what "be" says of the subject: "very old", "sehr alt"
    frequency: Wording | None = None  # an adverb that English puts before the verb: "often"
    manner: Wording | None = None
    goal: Wording | None = None  # the place that the verb requires: where to, or where
    company: Wording | None = None  # "with her dog"
    place: Wording | None = None  # any other place
    time: Wording | None = None
    fronted: bool = False  # whether the time comes first
    lasting: bool = False  # whether it describes a permanent state, which takes no time
    told: Wording | None = None  # a subordinate clause at the end, such as a reported one, with its conjunction

    # ------------------------------------------------------------------------------------------------- English

    def english(self, question: bool = False, gap: bool = False) -> str:
        """Make the tree: [time] subject [auxiliary] [not] [often] verb objects goal manner company place [time].

        With `gap` the subject is left out, as in a relative clause about it.
        """
        auxiliary, main = self._english_verb(question or self.negative)
        negation = "not" if self.negative else ""
        if negation and auxiliary == "can" and not question:
            auxiliary, negation = "cannot", ""
        subject = "" if gap else self.subject.english_tree("nominative")
        time = _adverbials(self.time)
        before = [negation, *_adverbials(self.frequency)]
        after = [*self._english_objects(), *(bracket("ADJP", text) for text in _english(self.predicate))]
        after += _adverbials(self.goal, self.manner, self.company, self.place)
        verb = verb_phrase(main.split(), [*after, *([] if self.fronted else time), *_english(self.told)])
        start = [*(time if self.fronted else []), *([auxiliary] if question else []), subject]
        rest = [bracket("VP", auxiliary, *before, verb)] if auxiliary and not question else [*before, verb]
        return bracket("SQ" if question else "S", *start, *rest)

    def _english_verb(self, needs_auxiliary: bool) -> tuple[str, str]:
        """Return the auxiliary, or "", and the rest of the verb; negation and questions need an auxiliary."""
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
        objects = [phrase.english_tree("dative") for phrase in (self.recipient, self.object) if phrase]
        verb = self.verb.english
        if not verb.rest:
            return objects
        if verb.rest in _PREPOSITIONS:
            return [bracket("PP", verb.rest, *objects)]
        comes_last = verb.movable and self.object is not None and self.object.is_pronoun
        objects.insert(len(objects) if comes_last else 0, bracket("PRT", verb.rest))
        return objects

    # -------------------------------------------------------------------------------------------------- German

    def german(self, order: Order) -> str:
        """Make the clause with its finite verb first, second or last; a relative clause of the object is at the end."""
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
        """Return the finite form, and the part of the verb that ends the clause."""
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
        """List what is between the parts of the verb: pronouns, time, known, "nicht", manner, new, place."""
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


def _adverbials(*parts: Wording | None) -> list[str]:
    return [adverbial(text) for text in _english(*parts)]


def _german(*parts: Wording | None) -> list[str]:
    return [part.german for part in parts if part]


def subordinate(conjunction: Wording, clause: Clause) -> Wording:
    """Make a subordinate clause: "because he works", "weil er arbeitet"."""
    return Wording(
        bracket("SBAR", conjunction.english, clause.english()), f"{conjunction.german} {clause.german('last')}"
    )


def relative_clause(pronoun: Phrase, clause: Clause) -> Wording:
    """Make a relative clause. `pronoun` is the subject of `clause`, or else its missing object.

    "who sleeps", "der schläft"; "that he waits for", "auf den er wartet".
    """
    is_subject = clause.subject is pronoun
    who = bracket("WHNP", pronoun.english["nominative" if is_subject else "accusative"])
    ours, theirs = bracket("SBAR", who, clause.english(gap=is_subject)), clause.german("last")
    if is_subject:
        return Wording(ours, theirs)
    preposition, case = clause.verb.object_case
    return Wording(ours, f"{preposition} {pronoun.german[case]} {theirs}".lstrip())


def write_sentence(english: str, german: str, mark: str = ".") -> Pair:
    """Finish the English tree and the German line: a capital letter, commas joined to words, and a mark at the end."""
    line = german.replace(" ,", ",").replace(",,", ",").rstrip(",")
    return close_sentence(english, mark), f"{line[0].upper()}{line[1:]}{mark}"


def statement(clause: Clause) -> Pair:
    """Make a statement: "Yesterday the man called me.", "Gestern rief der Mann mich an."."""
    return write_sentence(clause.english(), clause.german("second"))


def question(clause: Clause, asked: Wording | None = None) -> Pair:
    """Make a question: "Why did the man call me?", "Warum rief der Mann mich an?"; without `asked` a yes-no one."""
    ours, theirs = clause.english(question=True), [*_german(asked), clause.german("first")]
    if asked:
        ours = bracket("SBARQ", bracket("WHADVP", asked.english), ours)
    return write_sentence(ours, " ".join(theirs), "?")


def with_subordinate(main: Clause, conjunction: Wording, clause: Clause, first: bool = False) -> Pair:
    """Make a sentence such as "The man is tired because he works.", "Der Mann ist müde, weil er arbeitet.".

    If the subordinate clause is `first`, the German main verb follows it, and English has a comma.
    """
    because = subordinate(conjunction, clause)
    if first:
        ours = bracket("S", because.english, ",", inside(main.english()))
        return write_sentence(ours, f"{because.german} , {main.german('first')}")
    return statement(replace(main, told=because))


def compound(first: Clause, coordinator: Wording, second: Clause) -> Pair:
    """Join two clauses: "The man works, but the dog sleeps.", "Der Mann arbeitet, aber der Hund schläft."."""
    return write_sentence(
        bracket("S", first.english(), coordinator.english, second.english()),
        f"{first.german('second')} {coordinator.german} {second.german('second')}",
    )


def existence(verb: Verb, tense: str, what: Phrase, where: Wording, where_first: bool) -> Pair:
    """Make "There is an old bridge in the village.", "Es gibt eine alte Brücke im Dorf.".

    "Be" agrees with the bridge; "es gibt" has the same form for singular and plural, and takes the accusative.
    """
    be, finite = BE[tense][what.person], verb.german.finite[tense][2]
    ours, theirs, there = what.english_tree("nominative"), what.german["accusative"], bracket("NP", "there")
    if where_first:
        tree = bracket("S", where.english, there, bracket("VP", be, ours))
        return write_sentence(tree, f"{where.german} {finite} es {theirs}")
    tree = bracket("S", there, bracket("VP", be, ours, where.english))
    return write_sentence(tree, f"es {finite} {theirs} {where.german}")
