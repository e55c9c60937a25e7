"""Draw clauses at random: the verb, its tense, its objects and its adverbials."""

from dataclasses import replace
from random import Random

from etude.data.grammar import english, german
from etude.data.grammar.brackets import bracket
from etude.data.grammar.chance import Pool
from etude.data.grammar.clauses import Clause, Tense, relative_clause
from etude.data.grammar.draw_phrases import PERSON, PhraseDrawer
from etude.data.grammar.english import THIRD_PLURAL
from etude.data.grammar.selection import Selection, weighted
from etude.data.grammar.words import Classes, NounPhrase, Phrase, Verb, Wording, relative_pronoun

FRAMES = {
    "accusative": 42, "alone": 16, "copula": 10, "going": 9, "giving": 8, "staying": 8, "prepositional": 7, "dative": 7,
    "placing": 4,
}  # fmt: skip
"""The relative frequency of each kind of verb."""

TENSES = {"present": 30, "past": 30, "perfect": 18, "modal": 14, "future": 10, "progressive": 7}
EVERY_TENSE = frozenset(TENSES)
FOR_RELATIVES = frozenset({"present", "past", "perfect", "modal"})

PAST_MODAL = 0.2  # the share of past clauses about living things with a modal: "wanted to", "had to"
NEGATIVE = 0.13
TIME, FRONTED = 0.4, 0.5
FREQUENCY, MANNER, COMPANY, PLACE, BESIDE = 0.15, 0.1, 0.1, 0.22, 0.2
AGE, DEGREE = 0.2, 0.35
PLAIN_RELATIVE = 0.6

_LIVING = frozenset({"person", "animal"})
_MANNERED = frozenset({"accusative", "alone", "going", "placing"})
_FREE = frozenset({"room", "building", "town", "nature", "street"})


class ClauseDrawer(PhraseDrawer):
    """Draws clauses, given any of subject, verb and tenses."""

    def __init__(self, selection: Selection, random: Random) -> None:
        super().__init__(selection, random)
        framed = {frame: self.lexicon.verbs_of(frame) for frame in FRAMES}
        total = {frame: sum(verb.weight for verb in verbs) for frame, verbs in framed.items()}
        verbs = [verb for verbs in framed.values() for verb in verbs]
        self._verbs = Pool(verbs, [FRAMES[verb.frame] * verb.weight / total[verb.frame] for verb in verbs])
        self.copula = framed["copula"][0]
        self._adjectives = Pool(self.lexicon.adjectives)
        self._weather = Pool(self.lexicon.verbs_of("weather"))
        self._takers_of: dict[Classes, Pool[Verb]] = {}
        self._tenses: dict[Classes, Pool[str]] = {}
        self._modals = {
            tense: Pool([modal for modal in self.lexicon.modals if tense in modal.german])
            for tense in ("present", "past")
        }
        self._places = selection.locations(_FREE)

    def clause(
        self,
        *,
        tenses: Classes = EVERY_TENSE,
        subject: Phrase | None = None,
        verb: Verb | None = None,
        plain: bool = False,
    ) -> Clause:
        """Draw a clause in one of the `tenses`, with `subject` and `verb` if given; if `plain`, without adverbials."""
        verb = verb or self._verb(tenses, subject)
        if verb.frame == "copula":
            clause = self._description(verb, tenses, subject)
        else:
            clause = self._core(verb, subject or self.subject(verb), tenses)
            self._complete(clause)
        return self._finish(clause, plain)

    def relative(self, head: NounPhrase) -> Wording:
        """Draw a relative clause about a noun, which is its subject or its object."""
        pronoun = relative_pronoun(head)
        plain = self.chance(PLAIN_RELATIVE)
        takers = self._takers(head)
        if not takers or self.chance(0.5):
            clause = self.clause(tenses=FOR_RELATIVES, subject=pronoun, plain=plain)
        else:
            verb = takers.draw(self.random)
            clause = self._finish(self._core(verb, self.subject(verb), FOR_RELATIVES), plain)
        clause.fronted = False
        return relative_clause(pronoun, clause)

    def weather(self, tenses: Classes) -> Clause:
        """Draw a clause such as "it rains", "es regnet"."""
        it = replace(self.lexicon.impersonal["n"], classes=frozenset())
        return self._core(self._weather.draw(self.random), it, tenses)

    def _finish(self, clause: Clause, plain: bool) -> Clause:
        if self.chance(NEGATIVE):
            self._negate(clause)
        if not plain or clause.tense.name == "progressive":
            self._set_in_time(clause)
        if not plain:
            self._set_in_scene(clause)
        return clause

    def _takers(self, head: NounPhrase) -> Pool[Verb]:
        """Return the verbs that can have the noun as their only object."""
        if head.classes not in self._takers_of:
            fitting = (verb for verb in self._verbs.items if verb.objects & head.classes)
            frames = ("accusative", "dative", "prepositional")
            self._takers_of[head.classes] = weighted(verb for verb in fitting if verb.frame in frames)
        return self._takers_of[head.classes]

    def _verb(self, tenses: Classes, subject: Phrase | None) -> Verb:
        while True:
            verb = self._verbs.draw(self.random)
            if subject and verb.frame != "copula" and not verb.subjects & subject.classes:
                continue
            if verb.english.hides_tense and "perfect" not in tenses:
                continue
            return verb

    def _tense(self, verb: Verb, subject: Phrase, tenses: Classes) -> Tense:
        """Draw a tense. Verbs of states have no progressive, perfect or modal; only living subjects have modals."""
        if verb.lasting:
            tenses = tenses - {"progressive", "perfect"} or tenses
        if tenses not in self._tenses:
            names = [name for name in TENSES if name in tenses]
            self._tenses[tenses] = Pool(names, [TENSES[name] for name in names])
        name = self._tenses[tenses].draw(self.random)
        wilful = bool(subject.classes & _LIVING) and not verb.lasting
        if name == "modal":
            return Tense("present", self._modals["present"].draw(self.random)) if wilful else Tense("future")
        if name == "past" and wilful and self.chance(PAST_MODAL):
            return Tense("past", self._modals["past"].draw(self.random))
        if name in ("present", "past") and verb.english.hides_tense:
            return Tense("perfect")
        return Tense(name)

    def _core(self, verb: Verb, subject: Phrase, tenses: Classes) -> Clause:
        """Make a clause of subject and verb. A "staying" verb has no progressive, but its clause can have a time."""
        lasting = verb.lasting and verb.frame != "staying"
        return Clause(subject, verb, self._tense(verb, subject, tenses), lasting=lasting)

    def _complete(self, clause: Clause) -> None:
        """Draw the objects and the place that the verb requires."""
        verb, frame = clause.verb, clause.verb.frame
        if verb.objects:
            clause.object = self.object(verb, clause.subject)
        if frame == "giving":
            clause.recipient = self.somebody(clause.subject)
        if verb.places:
            clause.goal = self.where(self.selection.places[verb], "at" if frame == "staying" else "to")

    def _description(self, verb: Verb, tenses: Classes, subject: Phrase | None) -> Clause:
        """Draw a clause such as "X is very old", "X is twenty-one years old"."""
        if subject is None:
            adjective = self._adjectives.draw(self.random)
            subject = self.described(adjective)
        else:
            adjective = self.selection.adjectives[subject.classes].draw(self.random)
        predicate, lasting = Wording(adjective.english, adjective.predicate), adjective.lasting
        if PERSON in subject.classes and subject.person != THIRD_PLURAL and self.chance(AGE):
            years = self.number()
            predicate = Wording(
                f"{bracket('NP', english.numeral(years), 'years')} old", f"{german.numeral(years)} Jahre alt"
            )
            lasting = True
        elif self.chance(DEGREE):
            degree = self.word("degrees")
            predicate = Wording(f"{degree.english} {adjective.english}", f"{degree.german} {adjective.predicate}")
        if lasting:
            tenses = tenses & {"present", "past"} or tenses
        return Clause(subject, verb, self._tense(verb, subject, tenses), predicate=predicate, lasting=lasting)

    def _negate(self, clause: Clause) -> None:
        """Negate by "nicht", or by "kein" with an indefinite object, if that means the same in both languages."""
        if not clause.subject.definite or (clause.recipient and not clause.recipient.definite):
            return
        thing = clause.object
        if isinstance(thing, NounPhrase) and not thing.definite:
            if thing.number or (thing.determiner and thing.determiner.singular != "a"):
                return
            negation = self.lexicon.negations[0]
            clause.object = NounPhrase(thing.noun, thing.plural, negation, adjective=thing.adjective)
        clause.negative = True

    def _set_in_time(self, clause: Clause) -> None:
        tense = clause.tense.company
        if tense == "progressive" or (not clause.lasting and self.chance(TIME)):
            clause.time = self.time(tense)
            clause.fronted = self.chance(FRONTED)
        elif clause.subject.definite and not clause.negative and not clause.lasting and self.chance(FREQUENCY):
            clause.frequency = self.word("frequencies", tense)

    def _set_in_scene(self, clause: Clause) -> None:
        verb = clause.verb
        if verb.lasting or not clause.subject.classes & _LIVING or verb.frame not in _MANNERED:
            return
        if verb.deliberate and self.chance(MANNER):
            clause.manner = self.word("manners", verb.frame)
        elif PERSON in clause.subject.classes and self.chance(COMPANY):
            clause.company = self.company(clause.subject)
        if not clause.goal and not verb.objects & _FREE and self.chance(PLACE):
            clause.place = self.beside() if self.chance(BESIDE) else self.where(self._places)
