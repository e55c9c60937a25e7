"""English sentences as trees."""

from collections.abc import Callable
from itertools import islice
from random import Random

import pytest

from etude.data.grammar.brackets import adverbial, bracket, close_sentence, leaves, plain
from etude.data.grammar.clauses import (
    Clause,
    Tense,
    compound,
    existence,
    question,
    relative_clause,
    statement,
    with_subordinate,
)
from etude.data.grammar.draw_sentences import SentenceDrawer
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.selection import Selection
from etude.data.grammar.words import NounPhrase, Phrase, Verb, Wording, prepositional, relative_pronoun

Verbs = Callable[[str], Verb]
Build = Callable[..., NounPhrase]
Pronouns = Callable[[str], Phrase]
BECAUSE = Wording("because", "weil")


def test_empty_parts_leave_no_trace() -> None:
    assert bracket("VP", "has", "", bracket("NP", "it")) == "(VP has (NP it ) )"


def test_a_sentence_begins_with_a_capital_and_its_mark_is_its_last_word() -> None:
    tree = close_sentence("(S (NP (NP anna 's ) dog ) , (VP sleeps ) )", "?")
    assert tree == "(S (NP (NP Anna 's ) dog ) , (VP sleeps ) ? )"
    assert leaves(tree) == ["Anna", "'s", "dog", ",", "sleeps", "?"]
    assert plain(tree) == "Anna's dog, sleeps?"


@pytest.mark.parametrize(
    ("words", "tree"),
    [
        ("often", "(ADVP often )"),
        ("last week", "(NP last week )"),
        ("in the morning", "(PP in (NP the morning ) )"),
        ("at ten o'clock", "(PP at (NP ten o'clock ) )"),
        ("three days ago", "(ADVP (NP three days ) ago )"),
        ("(PP with (NP him ) )", "(PP with (NP him ) )"),
    ],
)
def test_adverbials_are_constituents_by_their_words(words: str, tree: str) -> None:
    assert adverbial(words) == tree


def test_verbs_nest_and_what_belongs_to_the_last_is_within_it(lexicon: Lexicon, verb: Verbs, np: Build) -> None:
    modals = {modal.english.base: modal for modal in lexicon.modals}
    call = {"subject": np("Mann"), "verb": verb("anrufen"), "object": np("Frau")}
    for tense, phrase in {
        Tense("past"): "(VP called {})",
        Tense("perfect"): "(VP has (VP called {}) )",
        Tense("present", modals["want"]): "(VP wants (S (VP to (VP call {}) ) ) )",
        Tense("present", modals["would"]): "(VP would (VP like (S (VP to (VP call {}) ) ) ) )",
    }.items():
        assert Clause(tense=tense, **call).english() == f"(S (NP the man ) {phrase.format('(NP the woman ) ')} )"


def test_prepositions_take_their_object_and_particles_do_not(verb: Verbs, np: Build, pronoun: Pronouns) -> None:
    he = pronoun("er")
    for infinitive, thing, phrase in [
        ("warten", np("Bus"), "(VP waits (PP for (NP the bus ) ) )"),
        ("abholen", np("Mann"), "(VP picks (PRT up ) (NP the man ) )"),
        ("abholen", pronoun("wir"), "(VP picks (NP us ) (PRT up ) )"),
    ]:
        assert Clause(he, verb(infinitive), Tense("present"), object=thing).english() == f"(S (NP he ) {phrase} )"


def test_a_relative_clause_lacks_what_it_tells_of(verb: Verbs, np: Build, pronoun: Pronouns) -> None:
    bus, he = np("Bus"), pronoun("er")
    who = relative_pronoun(np("Mann"))
    of_subject = relative_clause(who, Clause(who, verb("schlafen"), Tense("present")))
    of_object = relative_clause(relative_pronoun(bus), Clause(he, verb("warten"), Tense("present")))
    assert of_subject.english == "(SBAR (WHNP who ) (S (VP sleeps ) ) )"
    assert of_object.english == "(SBAR (WHNP that ) (S (NP he ) (VP waits (PP for ) ) ) )"
    bus.relative = of_object
    assert bus.english_tree("nominative") == f"(NP (NP the bus ) {of_object.english} )"


def test_sentences_of_two_clauses(verb: Verbs, pronoun: Pronouns) -> None:
    he, sleeps = pronoun("er"), verb("schlafen")
    one = Clause(he, sleeps, Tense("present"))
    inner = "(S (NP he ) (VP sleeps ) )"
    assert with_subordinate(one, BECAUSE, one)[0] == f"(S (NP He ) (VP sleeps (SBAR because {inner} ) ) . )"
    first = with_subordinate(one, BECAUSE, one, first=True)[0]
    assert first == f"(S (SBAR Because {inner} ) , (NP he ) (VP sleeps ) . )"
    both = compound(one, Wording(", but", ", aber"), one)[0]
    assert both == f"(S {inner.replace('he', 'He')} , but {inner} . )"


def test_questions_and_existence(lexicon: Lexicon, verb: Verbs, np: Build, pronoun: Pronouns) -> None:
    asleep = Clause(pronoun("er"), verb("schlafen"), Tense("past"))
    assert question(asleep)[0] == "(SQ Did (NP he ) (VP sleep ) ? )"
    why = question(asleep, Wording("why", "warum"))[0]
    assert why == "(SBARQ (WHADVP Why ) (SQ did (NP he ) (VP sleep ) ) ? )"
    where, give = prepositional(Wording("in", "in"), "dative", np("Wald")), lexicon.verbs_of("existing")[0]
    wolf = np("Wolf", "a")
    assert existence(give, "past", wolf, where, where_first=True)[0] == (
        "(S (PP In (NP the forest ) ) (NP there ) (VP was (NP a wolf ) ) . )"
    )
    old = Clause(pronoun("er"), verb("sein"), Tense("present"), predicate=Wording("very old", "sehr alt"))
    assert statement(old)[0] == "(S (NP He ) (VP is (ADJP very old ) ) . )"


def test_every_tree_that_is_drawn_closes_and_has_no_empty_constituent(selection: Selection) -> None:
    drawer = SentenceDrawer(selection, Random(5))
    for tree, _ in islice(iter(drawer.sentence, None), 3000):
        tokens, depth = tree.split(" "), 0
        for index, token in enumerate(tokens):
            depth += token.startswith("(")
            depth -= token == ")"
            assert (depth == 0) == (index == len(tokens) - 1), tree
            assert not (token == ")" and tokens[index - 1].startswith("(")), tree
