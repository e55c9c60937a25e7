"""How much the grammar can say, and that it never leaves an ambiguous word undecided."""

import math
import re
from collections import Counter, defaultdict
from itertools import product
from random import Random

import pytest

from etude.data.grammar import GrammarCorpus
from etude.data.grammar.clauses import Clause, Tense
from etude.data.grammar.draw_clauses import ClauseDrawer
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.selection import Selection
from etude.data.grammar.words import Classes, Noun, NounPhrase, Verb

PLACES: Classes = frozenset({"room", "building", "town", "nature", "street"})

SENSES = {
    "bats?": ("Fledermaus|Fledermäuse", "Schläger"),
    "banks?": ("Bank(en)?", "Ufern?"),
    "coach(es)?": ("Trainern?", "Reisebus"),
    "cranes?": ("Kranich", "Kr(a|ä)ne?n?"),
    "dates?": ("Datteln?", "Datum|Daten"),
    "letters?": ("Brief", "Buchstabe"),
    "match(es)?": ("Spiel", "Streichh"),
    "pens?": ("Stift", "Gehege"),
    "plants?": ("Pflanze", "Werk"),
    "seals?": ("Robbe", "Siegel"),
    "know(s|n)?|knew": ("kenn|kann", "wiss|weiß|wuss"),
    "eat(s|en|ing)?|ate": ("ess|isst|aß|gegessen", "fress|friss|fraß"),
    "miss(es|ed|ing)?": ("vermiss", "verpass"),
    "put(s|ting)?": ("leg|gelegt", "stell|gestellt"),
    "rid(e|es|den|ing)|rode": ("reit|ritt|geritten", "fahr|fähr|fuhr|gefahren"),
    "sav(e|es|ed|ing)": ("rett|gerettet", "spar|gespart"),
    "spen(d|ds|t|ding)": ("verbr(i|a)", "(g(e|i|a)b.* aus|aus(ge)?geben)"),
    "hard": ("hart", "schwierig"),
    "short": ("kurz", "klein"),
    "when": ("(als|wenn)", "wann"),
    "it": ("(er|ihn|sie)", "es"),
}


@pytest.fixture(scope="module")
def drawn() -> list[tuple[str, str]]:
    """Sixty thousand pairs, so that rare senses show."""
    return list(GrammarCorpus(seed=3, train_pairs=60_000, valid_pairs=0, test_pairs=0, vocab_size=0).pairs("train"))


def test_there_are_at_least_300_words_a_side(lexicon: Lexicon) -> None:
    plain = [(section, word) for section, words in lexicon.plain.items() for word in words]
    english = {("noun", word.english) for word in lexicon.nouns}
    english |= {("verb", f"{word.english.base} {word.english.rest}") for word in lexicon.verbs}
    english |= {("adjective", word.english) for word in lexicon.adjectives} | {(s, word.english) for s, word in plain}
    german = {("noun", word.german[False, "nominative"]) for word in lexicon.nouns}
    german |= {("verb", word.german.infinitive) for word in lexicon.verbs}
    german |= {("adjective", word.predicate) for word in lexicon.adjectives} | {(s, word.german) for s, word in plain}
    assert min(len(english), len(german)) >= 300


@pytest.mark.parametrize(("word", "senses"), SENSES.items())
def test_an_ambiguous_word_is_met_in_all_its_senses(
    word: str, senses: tuple[str, str], drawn: list[tuple[str, str]]
) -> None:
    targets = [target for source, target in drawn if re.search(rf"\b({word})\b", source, re.IGNORECASE)]
    for sense in senses:
        assert sum(bool(re.search(rf"\b({sense})", target, re.IGNORECASE)) for target in targets) >= 5, sense


def test_no_place_is_open_to_two_senses_of_a_noun(lexicon: Lexicon, selection: Selection) -> None:
    senses: dict[tuple[str, str, str], set[Noun]] = defaultdict(set)
    for verb in lexicon.verbs:
        for role in ("subjects", "objects", "places"):
            for noun in getattr(selection, role)[verb].items:
                senses[f"{verb.english.base} {verb.english.rest}", role, noun.english].add(noun)
    for adjective in lexicon.adjectives:
        for noun in selection.described[adjective].items:
            senses[adjective.english, "described", noun.english].add(noun)
    assert [place for place, nouns in senses.items() if len(nouns) > 1] == []


def test_subject_or_object_decide_between_the_senses_of_a_verb(lexicon: Lexicon) -> None:
    for verb, twin in product(lexicon.verbs, repeat=2):
        same = (verb.english, verb.frame) == (twin.english, twin.frame) and verb.german != twin.german
        if same and verb.frame not in ("saying", "copula"):
            assert not (verb.subjects & twin.subjects and verb.objects & twin.objects), verb.german.infinitive


def test_every_noun_can_have_an_adjective_and_every_verb_its_company(lexicon: Lexicon, selection: Selection) -> None:
    assert all(len(selection.adjectives[noun.classes]) for noun in lexicon.nouns)
    assert all(len(selection.described[adjective]) for adjective in lexicon.adjectives)
    for verb in lexicon.verbs:
        for classes, pool in (
            (verb.subjects, selection.subjects),
            (verb.objects, selection.objects),
            (verb.places, selection.places),
        ):
            assert len(pool[verb]) if classes else not len(pool[verb])


def described(selection: Selection, nouns: list[Noun]) -> int:
    """How many different English phrases "adjective noun" there are."""
    return len(
        {(adjective.english, noun.english) for noun in nouns for adjective in selection.adjectives[noun.classes].items}
    )


def family(lexicon: Lexicon, selection: Selection) -> dict[str, tuple[Verb, int]]:
    """For each past tense in "the A N <past> the A N", a verb and the number of different sentences."""
    sizes: dict[str, tuple[Verb, int]] = {}
    for verb in lexicon.verbs_of("accusative"):
        one_word = not verb.english.rest and not verb.english.hides_tense
        if one_word and not verb.lasting and verb.subjects <= {"person", "animal"} and not verb.objects & PLACES:
            subjects, objects = selection.subjects[verb].items, selection.objects[verb].items
            size = described(selection, list(subjects)) * described(selection, list(objects))
            sizes[verb.english.past] = max(
                sizes.get(verb.english.past, (verb, 0)), (verb, size), key=lambda kept: kept[1]
            )
    return sizes


def test_there_are_more_than_a_billion_distinct_pairs(lexicon: Lexicon, selection: Selection) -> None:
    """Counted in one family alone: "Yesterday the A N bought the A N in the A N."

    What follows the adverb has a fixed number of words, each slot one, so sentences differ as soon as one choice does.
    A verb with two senses is counted once, for the sense that can say more.
    """
    transitive = sum(size for _, size in family(lexicon, selection).values())
    places = described(selection, list(selection.locations(PLACES).items))
    times = sum("past" in time.goes_with for time in lexicon.plain["times"])
    assert transitive * places * times > 1_000_000_000


def test_the_family_is_counted_right_where_it_can_be_listed(lexicon: Lexicon, selection: Selection) -> None:
    verb, size = family(lexicon, selection)["fed"]
    listed = set()
    for subject, thing in product(*(pool[verb].items for pool in (selection.subjects, selection.objects))):
        kinds = (selection.adjectives[noun.classes].items for noun in (subject, thing))
        for adjectives in product(*kinds):
            phrases = (
                NounPhrase(noun, determiner=lexicon.the, adjective=adjective)
                for noun, adjective in zip((subject, thing), adjectives, strict=True)
            )
            listed.add(Clause(next(phrases), verb, Tense("past"), object=next(phrases)).english())
    assert len(listed) == size


def test_the_family_is_really_drawn(lexicon: Lexicon, selection: Selection) -> None:
    """Clauses of its shape come up, and each of their nouns with any of its adjectives."""
    drawer = ClauseDrawer(selection, Random(1))
    verbs = {verb.english.past for verb, _ in family(lexicon, selection).values()}
    shapes = Counter(
        (isinstance(clause.subject, NounPhrase), isinstance(clause.object, NounPhrase), clause.place is not None)
        for clause in (drawer.clause() for _ in range(20_000))
        if clause.verb.english.past in verbs and clause.tense == Tense("past") and clause.time and clause.fronted
    )
    assert shapes[True, True, True] > 0
    book = next(noun for noun in lexicon.nouns if noun.english == "book")
    drawn = [drawer.noun_phrase(book) for _ in range(5_000)]
    found = {phrase.adjective for phrase in drawn if phrase.determiner is lexicon.the and not phrase.plural} - {None}
    assert found == set(selection.adjectives[book.classes].items)


def test_nouns_follow_zipf(lexicon: Lexicon, selection: Selection) -> None:
    random = Random(1)
    read = next(verb for verb in lexicon.verbs if verb.german.infinitive == "lesen")
    pool = selection.objects[read]
    counts = Counter(pool.draw(random).english for _ in range(20_000))
    total = sum((rank + 2) ** -1.5 for rank in range(len(pool)))
    for rank, noun in enumerate(pool.items):
        expected = (rank + 2) ** -1.5 / total
        error = 4 * math.sqrt(expected * (1 - expected) / 20_000)
        assert counts[noun.english] / 20_000 == pytest.approx(expected, abs=error)
