"""One meaning, two word orders."""

from collections.abc import Callable
from typing import Any

import pytest

from etude.data.corpus import Pair
from etude.data.grammar import clauses
from etude.data.grammar.brackets import plain
from etude.data.grammar.clauses import Clause, Tense, relative_clause, subordinate
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.words import NounPhrase, Phrase, Verb, Wording, prepositional, relative_pronoun

Verbs = Callable[[str], Verb]
Build = Callable[..., NounPhrase]
Pronouns = Callable[[str], Phrase]


def plainly(written: Callable[..., Pair]) -> Callable[..., Pair]:
    """A way to write sentences, without the brackets of English."""

    def write(*parts: Any, **more: Any) -> Pair:
        tree, line = written(*parts, **more)
        return plain(tree), line

    return write


compound, existence, question, statement, with_subordinate = map(
    plainly, (clauses.compound, clauses.existence, clauses.question, clauses.statement, clauses.with_subordinate)
)

YESTERDAY = Wording("yesterday", "gestern")
BECAUSE = Wording("because", "weil")


@pytest.fixture
def call(verb: Verbs, np: Build) -> Callable[..., Clause]:
    """ "The man ... call the woman"."""

    def build(tense: str | Tense = "past", **more: Any) -> Clause:
        parts: dict[str, Any] = {"subject": np("Mann"), "verb": verb("anrufen"), "object": np("Frau")} | more
        return Clause(tense=Tense(tense) if isinstance(tense, str) else tense, **parts)

    return build


def modal(lexicon: Lexicon, english: str, tense: str = "present") -> Tense:
    """A tense with a modal, by the first word of its English side."""
    found = (word for word in lexicon.modals if english == word.english.base)
    return Tense(tense, next(found))


def test_the_verb_stands_second_also_after_an_adverbial(call: Callable[..., Clause]) -> None:
    assert statement(call(time=YESTERDAY)) == (
        "The man called the woman yesterday.",
        "Der Mann rief gestern die Frau an.",
    )
    assert statement(call(time=YESTERDAY, fronted=True)) == (
        "Yesterday the man called the woman.",
        "Gestern rief der Mann die Frau an.",
    )


def test_the_verb_stands_last_in_a_subordinate_clause_its_prefix_joined(
    call: Callable[..., Clause], verb: Verbs, pronoun: Pronouns
) -> None:
    laugh = Clause(pronoun("sie"), verb("lachen"), Tense("past"))
    assert with_subordinate(laugh, BECAUSE, call(), first=False) == (
        "She laughed because the man called the woman.",
        "Sie lachte, weil der Mann die Frau anrief.",
    )
    assert with_subordinate(laugh, BECAUSE, call(), first=True) == (
        "Because the man called the woman, she laughed.",
        "Weil der Mann die Frau anrief, lachte sie.",
    )


def test_a_reported_clause_has_its_verb_last(call: Callable[..., Clause], verb: Verbs, pronoun: Pronouns) -> None:
    told = subordinate(Wording("that", "dass"), call("present"))
    assert statement(Clause(pronoun("du"), verb("wissen"), Tense("present"), told=told)) == (
        "You know that the man calls the woman.",
        "Du weißt, dass der Mann die Frau anruft.",
    )


def test_the_perfect_puts_haben_or_sein_second_and_the_participle_last(
    call: Callable[..., Clause], verb: Verbs, np: Build
) -> None:
    assert statement(call("perfect"))[1] == "Der Mann hat die Frau angerufen."
    assert call("perfect").german("last") == "der Mann die Frau angerufen hat"
    arrive = Clause(np("Frau", "the", plural=True), verb("ankommen"), Tense("perfect"))
    assert statement(arrive) == ("The women have arrived.", "Die Frauen sind angekommen.")


def test_modals_and_the_future_put_the_infinitive_last(call: Callable[..., Clause], lexicon: Lexicon) -> None:
    cases = {
        Tense("future"): ("The man will call the woman.", "Der Mann wird die Frau anrufen."),
        modal(lexicon, "can"): ("The man can call the woman.", "Der Mann kann die Frau anrufen."),
        modal(lexicon, "can", "past"): ("The man could call the woman.", "Der Mann konnte die Frau anrufen."),
        modal(lexicon, "want"): ("The man wants to call the woman.", "Der Mann will die Frau anrufen."),
        modal(lexicon, "have", "past"): ("The man had to call the woman.", "Der Mann musste die Frau anrufen."),
        modal(lexicon, "would"): ("The man would like to call the woman.", "Der Mann möchte die Frau anrufen."),
    }
    for tense, pair in cases.items():
        assert statement(call(tense)) == pair


def test_questions_begin_with_the_verb_or_a_question_word(call: Callable[..., Clause], lexicon: Lexicon) -> None:
    assert question(call("present")) == (
        "Does the man call the woman?",
        "Ruft der Mann die Frau an?",
    )
    assert question(call(modal(lexicon, "want")), Wording("why", "warum")) == (
        "Why does the man want to call the woman?",
        "Warum will der Mann die Frau anrufen?",
    )


def test_nicht_follows_what_is_known_and_precedes_the_place(
    call: Callable[..., Clause], verb: Verbs, np: Build, lexicon: Lexicon
) -> None:
    assert statement(call("past", negative=True)) == (
        "The man did not call the woman.",
        "Der Mann rief die Frau nicht an.",
    )
    assert statement(call(modal(lexicon, "can"), negative=True)) == (
        "The man cannot call the woman.",
        "Der Mann kann die Frau nicht anrufen.",
    )
    goal = prepositional(Wording("to", "in"), "accusative", np("Stadt"))
    assert statement(Clause(np("Frau"), verb("gehen"), Tense("perfect"), negative=True, goal=goal)) == (
        "The woman has not gone to the city.",
        "Die Frau ist nicht in die Stadt gegangen.",
    )


def test_kein_negates_what_is_indefinite(verb: Verbs, np: Build, lexicon: Lexicon) -> None:
    for plural, pair in {
        False: ("The man does not buy a dog.", "Der Mann kauft keinen Hund."),
        True: ("The man does not buy dogs.", "Der Mann kauft keine Hunde."),
    }.items():
        dog = NounPhrase(np("Hund").noun, plural, lexicon.negations[0])
        clause = Clause(np("Mann"), verb("kaufen"), Tense("present"), object=dog, negative=True)
        assert statement(clause) == pair


@pytest.mark.parametrize(
    ("head", "plural", "infinitive", "expected"),
    [
        ("Mann", False, "sehen", "den er sieht"),
        ("Frau", False, "helfen", "der er hilft"),
        ("Kind", True, "helfen", "denen er hilft"),
        ("Bus", False, "warten", "auf den er wartet"),
        ("Katze", False, "anrufen", "die er anruft"),
        ("Auto", False, "träumen", "von dem er träumt"),
    ],
)
def test_an_object_relative_takes_its_case_from_its_own_verb(
    np: Build, verb: Verbs, pronoun: Pronouns, head: str, plural: bool, infinitive: str, expected: str
) -> None:
    clause = Clause(pronoun("er"), verb(infinitive), Tense("present"))
    assert relative_clause(relative_pronoun(np(head, plural=plural)), clause).german == expected


def test_a_relative_clause_stands_after_its_noun_or_at_the_end(
    call: Callable[..., Clause], np: Build, verb: Verbs
) -> None:
    def described(noun: str) -> NounPhrase:
        phrase = np(noun)
        pronoun = relative_pronoun(phrase)
        phrase.relative = relative_clause(pronoun, Clause(pronoun, verb("lachen"), Tense("present")))
        return phrase

    assert statement(call(subject=described("Frau"))) == (
        "The woman who laughs called the woman.",
        "Die Frau, die lacht, rief die Frau an.",
    )
    assert statement(call(object=described("Kind"))) == (
        "The man called the child who laughs.",
        "Der Mann rief das Kind an, das lacht.",
    )


def test_pronouns_come_first_in_the_middle_and_before_an_english_particle(
    verb: Verbs, np: Build, pronoun: Pronouns
) -> None:
    give: dict[str, Any] = {"recipient": pronoun("wir"), "object": np("Buch", "a"), "time": YESTERDAY}
    assert statement(Clause(np("Frau"), verb("geben"), Tense("past"), **give)) == (
        "The woman gave us a book yesterday.",
        "Die Frau gab uns gestern ein Buch.",
    )
    fetch = verb("abholen")
    assert statement(Clause(np("Frau"), fetch, Tense("past"), object=pronoun("er"))) == (
        "The woman picked him up.",
        "Die Frau holte ihn ab.",
    )
    assert plain(Clause(np("Frau"), fetch, Tense("past"), object=np("Mann")).english()) == "the woman picked up the man"


def test_prepositions_melt_with_the_article(verb: Verbs, np: Build) -> None:
    cases = {
        ("in", "dative", "Garten", "the"): "im Garten",
        ("in", "accusative", "Haus", "the"): "ins Haus",
        ("zu", "dative", "Schule", "the"): "zur Schule",
        ("zu", "dative", "Ufer", "the"): "zum Ufer",
        ("in", "dative", "Garten", "a"): "in einem Garten",
        ("in", "dative", "Stadt", "the"): "in der Stadt",
    }
    for (preposition, case, noun, determiner), expected in cases.items():
        assert prepositional(Wording("", preposition), case, np(noun, determiner)).german == expected


def test_two_main_clauses_both_have_the_verb_second(call: Callable[..., Clause], verb: Verbs, np: Build) -> None:
    sleep = Clause(np("Katze"), verb("schlafen"), Tense("present"))
    assert compound(sleep, Wording(", but", ", aber"), call("present")) == (
        "The cat sleeps, but the man calls the woman.",
        "Die Katze schläft, aber der Mann ruft die Frau an.",
    )


def test_es_gibt_never_agrees_and_takes_the_accusative(lexicon: Lexicon, np: Build) -> None:
    where = prepositional(Wording("in", "in"), "dative", np("Wald"))
    give = lexicon.verbs_of("existing")[0]
    assert existence(give, "present", np("Wolf", "a", "old"), where, where_first=False) == (
        "There is an old wolf in the forest.",
        "Es gibt einen alten Wolf im Wald.",
    )
    assert existence(give, "past", np("Wolf", "many", plural=True), where, where_first=True) == (
        "In the forest there were many wolves.",
        "Im Wald gab es viele Wölfe.",
    )


def test_it_follows_the_gender_of_what_it_stands_for(
    lexicon: Lexicon, verb: Verbs, np: Build, pronoun: Pronouns
) -> None:
    for noun, expected in {"Schlüssel": "er", "Lampe": "sie", "Buch": "es"}.items():
        it = lexicon.impersonal[np(noun).gender]
        assert it.english["nominative"] == "it"
        assert Clause(it, verb("sein"), Tense("present")).german("last") == f"{expected} ist"
