"""Drawing sentences: statements, questions, and the ways that clauses go together."""

from collections.abc import Callable
from random import Random

from etude.data.grammar.chance import Pool
from etude.data.grammar.clauses import Clause
from etude.data.grammar.draw_clauses import TENSES, ClauseDrawer
from etude.data.grammar.draw_phrases import PERSON, PhraseDrawer
from etude.data.grammar.english import THIRD_PLURAL, THIRD_SINGULAR
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.phrases import NounPhrase, Personal, Phrase
from etude.data.grammar.selection import Selection
from etude.data.grammar.sentences import Complex, Compound, Existence, Question, Sentence, Statement
from etude.data.grammar.words import Classes, Wording

PLAIN_MAIN, PLAIN_SUBORDINATE = 0.6, 0.75
SUBORDINATE_FIRST = 0.35
RAIN, SAME_SUBJECT, SAME_THING = 0.06, 0.4, 0.5  # what a subordinate clause is about, where it can
ABOUT_OBJECT = 0.5  # of relative clauses
ASKED = 0.45  # of questions begin with "why", "when" or "where"
WHETHER = 0.3  # of reports
PLACE_FIRST = 0.4
NONE = 0.2  # of statements of existence deny it

TOLD = frozenset({"present", "past", "perfect", "future", "modal"})
PAST = frozenset({"past"})
REPORTED = frozenset({"present", "past"})


class SentenceDrawer:
    """An endless stream of sentences.

    Args:
        lexicon: the words
        selection: which of them go together
        random: the only source of chance; the same state draws the same sentences
    """

    def __init__(self, lexicon: Lexicon, selection: Selection, random: Random) -> None:
        self._lexicon, self._random = lexicon, random
        self._phrases = PhraseDrawer(lexicon, selection, random)
        self._clauses = ClauseDrawer(self._phrases)
        kinds: dict[Callable[[], Sentence], int] = {
            self._statement: 62,
            self._complex: 13,
            self._described: 7,
            self._question: 8,
            self._report: 6,
            self._compound: 2,
            self._existence: 2,
            self._weather: 1,
        }
        self._kinds = Pool(list(kinds), kinds.values())
        self._conjunctions = Pool([(word, _sequences(word)) for word in lexicon.plain["conjunctions"]])
        self._coordinators = Pool(lexicon.plain["coordinators"])
        self._that, self._whether = lexicon.plain["reporters"]
        self._why, self._when, self._where, self._whither = lexicon.plain["interrogatives"]
        self._saying, self._asking = Pool(lexicon.verbs_of("saying")), Pool(lexicon.verbs_of("asking"))
        third = (word for word in lexicon.pronouns if word.person in (THIRD_SINGULAR, THIRD_PLURAL))
        self._third_person = {word.gender: word for word in third}
        self._exist = lexicon.verbs_of("existing")[0]
        outdoors, indoors = frozenset({"town", "nature", "street"}), frozenset({"room"})
        self._inventory = Pool(
            [
                (
                    selection.locations(outdoors, outdoors),
                    selection.unmistakable(frozenset({"building", "animal", "tree", PERSON})),
                ),
                (
                    selection.locations(indoors, indoors),
                    selection.unmistakable(frozenset({"furniture", "thing", "drink"})),
                ),
            ]
        )

    def sentence(self) -> Sentence:
        """The next one."""
        return self._kinds.draw(self._random)()

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _statement(self) -> Statement:
        return Statement(self._clauses.clause())

    def _weather(self) -> Statement:
        clause = self._clauses.weather(TOLD)
        clause.time = self._phrases.time(clause.tense.company)
        clause.fronted = self._chance(0.5)
        clause.place = self._phrases.where(self._inventory.items[0][0])
        return Statement(clause)

    def _described(self) -> Statement:
        """A statement with a relative clause, where it holds a noun that can have one."""
        clause = self._clauses.clause(plain=self._chance(PLAIN_MAIN))
        last = clause.object if _ends_with_object(clause) else None
        heads = [phrase for phrase in (last, clause.subject) if isinstance(phrase, NounPhrase)]
        if heads:
            head = heads[0 if self._chance(ABOUT_OBJECT) else -1]
            head.relative = self._clauses.relative(head)
        return Statement(clause)

    def _question(self) -> Question:
        clause = self._clauses.clause()
        clause.fronted, clause.frequency = False, None
        return Question(clause, self._asked(clause) if self._chance(ASKED) and not clause.lasting else None)

    def _asked(self, clause: Clause) -> Wording:
        """The word for what the clause leaves open, taken out of it."""
        if clause.negative or clause.predicate or self._chance(0.3):
            return self._why
        if clause.time is None and self._chance(0.5) and clause.tense.name in ("past", "future"):
            return self._when
        goes = clause.goal is not None and clause.verb.frame != "staying"
        clause.goal, clause.place = None, None
        return self._whither if goes else self._where

    def _complex(self) -> Complex:
        conjunction, sequences = self._conjunctions.draw(self._random)
        before, after = (frozenset({tense}) for tense in sequences.draw(self._random))
        lasting = "lasting" in conjunction.goes_with
        main = self._fleeting(lasting, lambda: self._clauses.clause(tenses=before, plain=self._chance(PLAIN_MAIN)))
        subordinate_first = self._chance(SUBORDINATE_FIRST)
        if subordinate_first:
            main.fronted = False
        subordinate = self._fleeting(lasting, lambda: self._subordinate(main, after, may_refer=not subordinate_first))
        return Complex(main, conjunction, subordinate, subordinate_first)

    def _fleeting(self, lasting: bool, draw: Callable[[], Clause]) -> Clause:
        """What is drawn; drawn again if it lasts, unless it may: nobody sleeps before he is tall."""
        clause = draw()
        while clause.lasting and not lasting:
            clause = draw()
        return clause

    def _subordinate(self, main: Clause, tenses: Classes, may_refer: bool) -> Clause:
        """A clause about the subject of `main`, about its object ("it": "er", "sie", "es"), or about something new."""
        if self._chance(RAIN):
            return self._clauses.weather(tenses)
        subject, verb = None, None
        if self._chance(SAME_SUBJECT):
            subject = self._pronoun_for(main.subject)
        elif may_refer and _it_is_the_object(main) and self._chance(SAME_THING):
            subject, verb = self._pronoun_for(main.object), self._clauses.copula
        while True:
            clause = self._clauses.clause(
                tenses=tenses, subject=subject, verb=verb, plain=self._chance(PLAIN_SUBORDINATE)
            )
            clause.fronted = False
            if subject or not _seems_to_refer(clause.subject, main):
                return clause

    def _pronoun_for(self, phrase: Phrase | None) -> Phrase | None:
        """The pronoun for somebody or something mentioned before; None for "das Kind", who is "he" or "she"."""
        if isinstance(phrase, Personal):
            return phrase
        if phrase is None or (PERSON in phrase.classes and phrase.gender == "n"):
            return None
        if PERSON in phrase.classes or phrase.gender == "plural":
            return Personal(self._third_person[phrase.gender], phrase.classes)
        return Personal(self._lexicon.impersonal[phrase.gender], phrase.classes)

    def _report(self) -> Statement:
        """ "She knows that he sleeps", "sie weiß, dass er schläft"."""
        clauses, doubtful = self._clauses, self._chance(WHETHER)
        verb = (self._asking if doubtful else self._saying).draw(self._random)
        main = clauses.clause(tenses=REPORTED if verb.lasting else REPORTED | {"perfect"}, verb=verb, plain=True)
        told = self._subordinate(main, PAST if main.tense.name == "past" else TOLD, may_refer=False)
        main.told = self._whether if doubtful else self._that, told
        return Statement(main)

    def _compound(self) -> Compound:
        first = self._clauses.clause(tenses=TOLD, plain=True)
        second = self._clauses.clause(tenses=frozenset({first.tense.company}), plain=True)
        return Compound(first, self._coordinators.draw(self._random), second)

    def _existence(self) -> Existence:
        """ "There are seven apples in the kitchen."; what there is, is not known yet."""
        where, what = self._inventory.draw(self._random)
        thing = self._phrases.noun_phrase(what.draw(self._random))
        if self._chance(NONE):
            thing = NounPhrase(thing.noun, thing.plural, self._lexicon.negations[1], adjective=thing.adjective)
        elif thing.definite:
            determiner = None if thing.plural or thing.noun.plural is None else self._lexicon.a
            thing = NounPhrase(thing.noun, thing.plural, determiner, adjective=thing.adjective)
        tense = "past" if self._chance(0.4) else "present"
        return Existence(self._exist, tense, thing, self._phrases.where(where), self._chance(PLACE_FIRST))


def _sequences(conjunction: Wording) -> Pool[tuple[str, str]]:
    """The tenses of main and subordinate clause that go together; sorted, since sets have no order of their own."""
    sequences = [
        (before, after) for before, after in (rule.split(">") for rule in sorted(conjunction.goes_with) if ">" in rule)
    ]
    return Pool(sequences, [TENSES[before] * TENSES[after] for before, after in sequences])


def _ends_with_object(clause: Clause) -> bool:
    """Whether the English object stands last, so that a relative clause can follow it."""
    after = clause.goal or clause.place or clause.company or clause.manner or (clause.time and not clause.fronted)
    return clause.object is not None and not after and not clause.negative


def _it_is_the_object(clause: Clause) -> bool:
    """Whether "it", or "they", in a following clause can only be the object."""
    thing = clause.object
    return (
        isinstance(thing, NounPhrase)
        and PERSON not in thing.classes
        and not thing.negative
        and PERSON in clause.subject.classes
        and clause.subject.person != THIRD_PLURAL
        and not (clause.place or clause.goal)
    )


def _seems_to_refer(subject: Phrase, clause: Clause) -> bool:
    """Whether "they" would be taken for things or animals in `clause`, though persons are meant."""
    return (
        isinstance(subject, Personal)
        and subject.person == THIRD_PLURAL
        and any(
            phrase and phrase.gender == "plural" and PERSON not in phrase.classes
            for phrase in (clause.subject, clause.object)
        )
    )
