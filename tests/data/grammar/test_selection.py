"""How much the grammar can say, and that it never leaves an ambiguous word undecided."""

import math
import re
from collections import Counter, defaultdict
from itertools import product
from random import Random

import pytest

from etude.data.corpus import Pair
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.selection import Selection
from etude.data.grammar.words import Noun

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
    word: str, senses: tuple[str, str], configured: dict[str, list[Pair]]
) -> None:
    targets = [target for source, target in configured["train"] if re.search(rf"\b({word})\b", source, re.IGNORECASE)]
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
