"""Drawing clauses: what happens, in which tense, and what else is said about it."""

from etude.data.grammar import english, german
from etude.data.grammar.chance import Pool
from etude.data.grammar.clauses import Clause, Tense
from etude.data.grammar.draw_phrases import PERSON, PhraseDrawer
from etude.data.grammar.english import THIRD_PLURAL
from etude.data.grammar.phrases import NounPhrase, Personal, Phrase
from etude.data.grammar.relatives import RelativeClause, RelativePronoun
from etude.data.grammar.words import Classes, Verb, Wording

FRAMES = {
    "accusative": 42, "alone": 16, "copula": 10, "going": 9, "giving": 8, "staying": 8, "prepositional": 7, "dative": 7,
    "placing": 4,
}  # fmt: skip
"""How often a clause is built around each kind of verb."""

TENSES = {"present": 30, "past": 30, "perfect": 18, "modal": 14, "future": 10, "progressive": 7}
EVERY_TENSE = frozenset(TENSES)
FOR_RELATIVES = frozenset({"present", "past", "perfect", "modal"})

PAST_MODAL = 0.2  # of the past of living things: "wanted to", "had to"
NEGATIVE = 0.13
TIME, FRONTED = 0.4, 0.5
FREQUENCY, MANNER, COMPANY, PLACE, BESIDE = 0.15, 0.1, 0.1, 0.22, 0.2
AGE, DEGREE = 0.2, 0.35
PLAIN_RELATIVE = 0.6

_LIVING = frozenset({"person", "animal"})
_FREE = frozenset({"room", "building", "town", "nature", "street"})


class ClauseDrawer:
    """Draws clauses around what has been settled about them.

    Args:
        phrases: draws their parts
    """

    def __init__(self, phrases: PhraseDrawer) -> None:
        self.phrases = phrases
        self._lexicon, self._random = phrases.lexicon, phrases.random
        framed = {frame: self._lexicon.verbs_of(frame) for frame in FRAMES}
        self._verbs = Pool(
            [verb for verbs in framed.values() for verb in verbs],
            [
                FRAMES[frame] * verb.weight / sum(other.weight for other in verbs)
                for frame, verbs in framed.items()
                for verb in verbs
            ],
        )
        self.copula = framed["copula"][0]
        self._weather = Pool(self._lexicon.verbs_of("weather"))
        self._takers_of: dict[Classes, Pool[Verb]] = {}
        self._tenses: dict[Classes, Pool[str]] = {}
        self._modals = {
            tense: Pool([modal for modal in self._lexicon.modals if tense in modal.german])
            for tense in ("present", "past")
        }
        self._manners = {
            frame: Pool([word for word in self._lexicon.plain["manners"] if frame in word.goes_with])
            for frame in ("accusative", "alone", "going", "placing")
        }
        self._degrees = Pool(self._lexicon.plain["degrees"])
        self._places = phrases.selection.locations(_FREE, _FREE)

    def clause(
        self,
        *,
        tenses: Classes = EVERY_TENSE,
        subject: Phrase | None = None,
        verb: Verb | None = None,
        plain: bool = False,
    ) -> Clause:
        """A clause in one of the `tenses`, about `subject`, with `verb`; if `plain`, without adverbials."""
        verb = verb or self._verb(tenses, subject)
        if verb.frame == "copula":
            clause = self._description(verb, tenses, subject)
        else:
            subject = subject or self.phrases.subject(verb)
            clause = self._core(verb, subject, tenses)
            self._complete(clause)
        return self._finished(clause, plain)

    def relative(self, head: NounPhrase) -> RelativeClause:
        """A clause about a noun, which is its subject or its object."""
        pronoun = RelativePronoun(head)
        plain = self.phrases.chance(PLAIN_RELATIVE)
        takers = self._takers(head)
        if not takers or self.phrases.chance(0.5):
            clause = self.clause(tenses=FOR_RELATIVES, subject=pronoun, plain=plain)
        else:
            verb = takers.draw(self._random)
            clause = self._finished(self._core(verb, self.phrases.subject(verb), FOR_RELATIVES), plain)
        clause.fronted = False
        return RelativeClause(pronoun, clause)

    def weather(self, tenses: Classes) -> Clause:
        """ "It rains", "es regnet"."""
        it = Personal(self._lexicon.impersonal["n"], frozenset())
        return self._core(self._weather.draw(self._random), it, tenses)

    def _finished(self, clause: Clause, plain: bool) -> Clause:
        if self.phrases.chance(NEGATIVE):
            self._negate(clause)
        if not plain or clause.tense.name == "progressive":
            self._set_in_time(clause)
        if not plain:
            self._set_in_scene(clause)
        return clause

    def _takers(self, head: NounPhrase) -> Pool[Verb]:
        """The verbs that take a noun as their only object."""
        if head.classes not in self._takers_of:
            verbs = [
                verb
                for verb in self._verbs.items
                if verb.frame in ("accusative", "dative", "prepositional") and verb.objects & head.classes
            ]
            self._takers_of[head.classes] = Pool(verbs, [verb.weight for verb in verbs])
        return self._takers_of[head.classes]

    def _verb(self, tenses: Classes, subject: Phrase | None) -> Verb:
        while True:
            verb = self._verbs.draw(self._random)
            if subject and verb.frame != "copula" and not verb.subjects & subject.classes:
                continue
            if verb.english.hides_tense and "perfect" not in tenses:
                continue
            return verb

    def _tense(self, verb: Verb, subject: Phrase, tenses: Classes) -> Tense:
        """A tense that goes with it: what lasts has no progressive and no perfect, things have no wishes."""
        if verb.lasting:
            tenses = tenses - {"progressive", "perfect"} or tenses
        if tenses not in self._tenses:
            names = [name for name in TENSES if name in tenses]
            self._tenses[tenses] = Pool(names, [TENSES[name] for name in names])
        name = self._tenses[tenses].draw(self._random)
        wilful = bool(subject.classes & _LIVING) and not verb.lasting
        if name == "modal":
            return Tense("present", self._modals["present"].draw(self._random)) if wilful else Tense("future")
        if name == "past" and wilful and self.phrases.chance(PAST_MODAL):
            return Tense("past", self._modals["past"].draw(self._random))
        if name in ("present", "past") and verb.english.hides_tense:
            return Tense("perfect")
        return Tense(name)

    def _core(self, verb: Verb, subject: Phrase, tenses: Classes) -> Clause:
        """Subject and verb; where one is changes, although one cannot "be being" there."""
        lasting = verb.lasting and verb.frame != "staying"
        return Clause(subject, verb, self._tense(verb, subject, tenses), lasting=lasting)

    def _complete(self, clause: Clause) -> None:
        """The objects and the place that the verb cannot do without."""
        phrases, verb, frame = self.phrases, clause.verb, clause.verb.frame
        if verb.objects:
            clause.object = phrases.object(verb, clause.subject)
        if frame == "giving":
            clause.recipient = phrases.somebody(clause.subject)
        elif frame == "staying":
            clause.goal = phrases.where(phrases.selection.places[verb])
        elif verb.places:
            clause.goal = phrases.where_to(phrases.selection.places[verb])

    def _description(self, verb: Verb, tenses: Classes, subject: Phrase | None) -> Clause:
        """ "X is very old", "X is twenty-one years old"."""
        phrases = self.phrases
        if subject is None:
            adjective = phrases.quality()
            subject = phrases.described(adjective)
        else:
            adjective = phrases.selection.adjectives[subject.classes].draw(self._random)
        predicate, lasting = Wording(adjective.english, adjective.predicate), adjective.lasting
        if PERSON in subject.classes and subject.person != THIRD_PLURAL and phrases.chance(AGE):
            years = phrases.number()
            predicate = Wording(f"{english.numeral(years)} years old", f"{german.numeral(years)} Jahre alt")
            lasting = True
        elif phrases.chance(DEGREE):
            degree = self._degrees.draw(self._random)
            predicate = Wording(f"{degree.english} {adjective.english}", f"{degree.german} {adjective.predicate}")
        if lasting:
            tenses = tenses & {"present", "past"} or tenses
        return Clause(subject, verb, self._tense(verb, subject, tenses), predicate=predicate, lasting=lasting)

    def _negate(self, clause: Clause) -> None:
        """ "nicht", or "kein" with an indefinite object; only where both languages mean the same by it."""
        if not clause.subject.definite or (clause.recipient and not clause.recipient.definite):
            return
        thing = clause.object
        if isinstance(thing, NounPhrase) and not thing.definite:
            if thing.number or (thing.determiner and thing.determiner.singular != "a"):
                return
            negation = self._lexicon.negations[0]
            clause.object = NounPhrase(thing.noun, thing.plural, negation, adjective=thing.adjective)
        clause.negative = True

    def _set_in_time(self, clause: Clause) -> None:
        """When, or how often."""
        phrases, tense = self.phrases, clause.tense.company
        if tense == "progressive" or (not clause.lasting and phrases.chance(TIME)):
            clause.time = phrases.time(tense)
            clause.fronted = phrases.chance(FRONTED)
        elif clause.subject.definite and not clause.negative and not clause.lasting and phrases.chance(FREQUENCY):
            clause.frequency = phrases.frequency(tense)

    def _set_in_scene(self, clause: Clause) -> None:
        """How, with whom and where."""
        phrases, verb = self.phrases, clause.verb
        if verb.lasting or not clause.subject.classes & _LIVING or verb.frame not in self._manners:
            return
        if verb.deliberate and phrases.chance(MANNER):
            clause.manner = self._manners[verb.frame].draw(self._random)
        elif PERSON in clause.subject.classes and phrases.chance(COMPANY):
            clause.company = phrases.company(clause.subject)
        if not clause.goal and not verb.objects & _FREE and phrases.chance(PLACE):
            clause.place = phrases.beside() if phrases.chance(BESIDE) else phrases.where(self._places)
