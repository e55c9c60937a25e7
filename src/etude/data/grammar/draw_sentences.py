"""Draw sentences at random: statements, questions, and combinations of clauses."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from etude.data.grammar.chance import Pool
from etude.data.grammar.clauses import (
    Clause,
    Pair,
    compound,
    existence,
    question,
    statement,
    subordinate,
    with_subordinate,
)
from etude.data.grammar.draw_clauses import TENSES, ClauseDrawer
from etude.data.grammar.draw_phrases import PERSON
from etude.data.grammar.english import THIRD_PLURAL, THIRD_SINGULAR
from etude.data.grammar.selection import Selection
from etude.data.grammar.words import Classes, NounPhrase, Phrase, Wording

PLAIN_MAIN, PLAIN_SUBORDINATE = 0.6, 0.75
SUBORDINATE_FIRST = 0.35
RAIN, SAME_SUBJECT, SAME_THING = 0.06, 0.4, 0.5  # what a subordinate clause is about, if it can be
ABOUT_OBJECT = 0.5  # the share of relative clauses about the object
ASKED = 0.45  # the share of questions with "why", "when" or "where"
WHETHER = 0.3  # the share of reports with "whether"
PLACE_FIRST = 0.4
NONE = 0.2  # the share of statements of existence that are negative

TOLD = frozenset({"present", "past", "perfect", "future", "modal"})
PAST = frozenset({"past"})
REPORTED = frozenset({"present", "past"})


class SentenceDrawer(ClauseDrawer):
    """Draws an endless stream of sentences; the same state of `random` gives the same ones."""

    def __init__(self, selection: Selection, random: Random) -> None:
        super().__init__(selection, random)
        kinds: dict[Callable[[], Pair], int] = {
            self._statement: 62,
            self._complex: 13,
            self._described: 7,
            self._question: 8,
            self._report: 6,
            self._compound: 2,
            self._existence: 2,
            self._rain: 1,
        }
        self._kinds = Pool(list(kinds), kinds.values())
        plain = self.lexicon.plain
        self._conjunctions = Pool([(word, _sequences(word)) for word in plain["conjunctions"]])
        self._that, self._whether = plain["reporters"]
        self._why, self._when, self._where, self._whither = plain["interrogatives"]
        self._saying, self._asking = (Pool(self.lexicon.verbs_of(frame)) for frame in ("saying", "asking"))
        third = (word for word in self.lexicon.pronouns if word.person in (THIRD_SINGULAR, THIRD_PLURAL))
        self._third_person = {word.gender: word for word in third}
        self._exist = self.lexicon.verbs_of("existing")[0]
        self._outdoors = selection.locations(frozenset({"town", "nature", "street"}))
        met_there = selection.unmistakable("building", "animal", "tree", PERSON)
        indoors, kept_there = (
            selection.locations(frozenset({"room"})),
            selection.unmistakable("furniture", "thing", "drink"),
        )
        self._inventory = Pool([(self._outdoors, met_there), (indoors, kept_there)])

    def sentence(self) -> Pair:
        """Draw the next sentence: an English tree and a German line."""
        return self._kinds.draw(self.random)()

    def _statement(self) -> Pair:
        return statement(self.clause())

    def _rain(self) -> Pair:
        clause = self.weather(TOLD)
        clause.time = self.time(clause.tense.company)
        clause.fronted = self.chance(0.5)
        clause.place = self.where(self._outdoors)
        return statement(clause)

    def _described(self) -> Pair:
        """Draw a statement with a relative clause, if it has a noun that can take one."""
        clause = self.clause(plain=self.chance(PLAIN_MAIN))
        last = clause.object if ends_with_object(clause) else None
        heads = [phrase for phrase in (last, clause.subject) if isinstance(phrase, NounPhrase)]
        if heads:
            head = heads[0 if self.chance(ABOUT_OBJECT) else -1]
            head.relative = self.relative(head)
        return statement(clause)

    def _question(self) -> Pair:
        clause = self.clause()
        clause.fronted, clause.frequency = False, None
        asked = self._asked(clause) if self.chance(ASKED) and not clause.lasting else None
        return question(clause, asked)

    def _asked(self, clause: Clause) -> Wording:
        """Draw an interrogative, and remove from the clause what it asks for."""
        if clause.negative or clause.predicate or self.chance(0.3):
            return self._why
        if clause.time is None and self.chance(0.5) and clause.tense.name in ("past", "future"):
            return self._when
        goes = clause.goal is not None and clause.verb.frame != "staying"
        clause.goal, clause.place = None, None
        return self._whither if goes else self._where

    def _complex(self) -> Pair:
        conjunction, sequences = self._conjunctions.draw(self.random)
        before, after = (frozenset({tense}) for tense in sequences.draw(self.random))
        lasting = "lasting" in conjunction.goes_with
        main = self._fleeting(lasting, lambda: self.clause(tenses=before, plain=self.chance(PLAIN_MAIN)))
        subordinate_first = self.chance(SUBORDINATE_FIRST)
        if subordinate_first:
            main.fronted = False
        other = self._fleeting(lasting, lambda: self._subordinate(main, after, may_refer=not subordinate_first))
        return with_subordinate(main, conjunction, other, subordinate_first)

    def _fleeting(self, lasting: bool, draw: Callable[[], Clause]) -> Clause:
        """Draw a clause, again if it describes a permanent state and may not: not "he sleeps before he is tall"."""
        clause = draw()
        while clause.lasting and not lasting:
            clause = draw()
        return clause

    def _subordinate(self, main: Clause, tenses: Classes, may_refer: bool) -> Clause:
        """Draw a clause about the subject of `main`, about its object ("it": "er", "sie", "es"), or anything new."""
        if self.chance(RAIN):
            return self.weather(tenses)
        subject, verb = None, None
        if self.chance(SAME_SUBJECT):
            subject = self._pronoun_for(main.subject)
        elif may_refer and _it_is_the_object(main) and self.chance(SAME_THING):
            subject, verb = self._pronoun_for(main.object), self.copula
        while True:
            clause = self.clause(tenses=tenses, subject=subject, verb=verb, plain=self.chance(PLAIN_SUBORDINATE))
            clause.fronted = False
            if subject or not _seems_to_refer(clause.subject, main):
                return clause

    def _pronoun_for(self, phrase: Phrase | None) -> Phrase | None:
        """Return the pronoun for a phrase; None for neuter persons such as "das Kind", who may be "he" or "she"."""
        if phrase is None or phrase.is_pronoun:
            return phrase
        is_person = PERSON in phrase.classes
        if is_person and phrase.gender == "n":
            return None
        pronouns = self._third_person if is_person or phrase.gender == "plural" else self.lexicon.impersonal
        return replace(pronouns[phrase.gender], classes=phrase.classes)

    def _report(self) -> Pair:
        """Draw a sentence such as "She knows that he sleeps.", "Sie weiß, dass er schläft."."""
        doubtful = self.chance(WHETHER)
        verb = (self._asking if doubtful else self._saying).draw(self.random)
        main = self.clause(tenses=REPORTED if verb.lasting else REPORTED | {"perfect"}, verb=verb, plain=True)
        told = self._subordinate(main, PAST if main.tense.name == "past" else TOLD, may_refer=False)
        main.told = subordinate(self._whether if doubtful else self._that, told)
        return statement(main)

    def _compound(self) -> Pair:
        first = self.clause(tenses=TOLD, plain=True)
        second = self.clause(tenses=frozenset({first.tense.company}), plain=True)
        return compound(first, self.word("coordinators"), second)

    def _existence(self) -> Pair:
        """Draw a sentence such as "There are seven apples in the kitchen."; the apples are always indefinite."""
        where, what = self._inventory.draw(self.random)
        thing = self.noun_phrase(what.draw(self.random))
        if self.chance(NONE):
            thing = NounPhrase(thing.noun, thing.plural, self.lexicon.negations[1], adjective=thing.adjective)
        elif thing.definite:
            determiner = None if thing.plural or thing.noun.plural is None else self.lexicon.a
            thing = NounPhrase(thing.noun, thing.plural, determiner, adjective=thing.adjective)
        tense = "past" if self.chance(0.4) else "present"
        place = self.where(where)
        return existence(self._exist, tense, thing, place, where_first=self.chance(PLACE_FIRST))


def _sequences(conjunction: Wording) -> Pool[tuple[str, str]]:
    """Return the pairs of tenses of main and subordinate clause for a conjunction, sorted because sets are not."""
    rules = (rule.partition(">") for rule in sorted(conjunction.goes_with) if ">" in rule)
    sequences = [(before, after) for before, _, after in rules]
    return Pool(sequences, [TENSES[before] * TENSES[after] for before, after in sequences])


def ends_with_object(clause: Clause) -> bool:
    """Whether the English clause ends with its object, so that a relative clause can follow it."""
    after = clause.goal or clause.place or clause.company or clause.manner or (clause.time and not clause.fronted)
    return clause.object is not None and not after and not clause.negative


def _it_is_the_object(clause: Clause) -> bool:
    """Whether "it", or "they", in a following clause can only be the object."""
    thing = clause.object
    is_thing = isinstance(thing, NounPhrase) and PERSON not in thing.classes and not thing.negative
    by_a_person = PERSON in clause.subject.classes and clause.subject.person != THIRD_PLURAL
    return is_thing and by_a_person and not (clause.place or clause.goal)


def _seems_to_refer(subject: Phrase, clause: Clause) -> bool:
    """Whether "they", which means persons, could be misread as things or animals in `clause`."""
    several = (phrase for phrase in (clause.subject, clause.object) if phrase and phrase.gender == "plural")
    is_they = subject.is_pronoun and subject.person == THIRD_PLURAL
    return is_they and any(PERSON not in phrase.classes for phrase in several)
