"""Sentences with one thing wrong are outside the grammar."""

import re
from collections import Counter
from random import Random

import pytest

from etude.data.grammar import GrammarCorpus
from etude.data.grammar.broken import Breaker
from etude.data.grammar.lexicon import shipped


@pytest.fixture(scope="module")
def breaker():
    return Breaker(shipped())


@pytest.fixture(scope="module")
def sentences():
    corpus = GrammarCorpus(seed=11, train_pairs=20_000, valid_pairs=1, test_pairs=1, vocab_size=1)
    return [sentence for sentence, _ in corpus.pairs("train")]


def test_no_sentence_of_the_grammar_is_taken_for_wrong(breaker, sentences):
    assert [sentence for sentence in sentences if breaker.is_wrong(sentence)] == []


def test_every_sentence_made_wrong_is_known_to_be_and_is_none_of_the_grammars(breaker, sentences):
    random, own = Random(1), set(sentences)
    broken = [wrong for sentence in sentences if (wrong := breaker.break_sentence(sentence, random))]
    assert len(broken) > 0.7 * len(sentences)
    assert all(breaker.is_wrong(wrong) for wrong in broken)
    assert not own & set(broken)


def test_one_thing_is_wrong_and_the_rest_is_as_it_was(breaker, sentences):
    kinds = Counter()
    for sentence in sentences[:5000]:
        wrong = breaker.break_sentence(sentence, Random(sentence))
        if wrong:
            before, after = sentence.split(), wrong.split()
            assert len(before) == len(after)
            assert before[0][0] == after[0][0].upper() or before[0] == after[0], "capitals tell nothing"
            assert (before[-1][-1], wrong[-1]) == (wrong[-1], sentence[-1])
            bare = [[re.sub(r"\W*$", "", word) for word in words] for words in (before, after)]
            different = [n for n, (one, other) in enumerate(zip(*bare, strict=True)) if one != other]
            swapped = sorted(bare[0]) == sorted(bare[1])
            assert len(different) == (2 if swapped else 1)
            assert not swapped or different[1] == different[0] + 1
            kinds["order" if swapped else "form"] += 1
    assert min(kinds["order"], kinds["form"]) > 500


@pytest.mark.parametrize(
    "wrong",
    [
        "The dogs sees cat the.",
        "He often sings and the sleeps.",
        "She sleep.",
        "Today they sleeps in the house.",
        "I reads a book.",
        "These dog slept.",
        "A men slept.",
        "We saw every dogs, because he sang.",
    ],
)
def test_what_a_reader_knows_to_be_wrong_is(breaker, wrong):
    assert breaker.is_wrong(wrong)


@pytest.mark.parametrize(
    "right",
    [
        "Does he sleep?",
        "They put the book on the table.",
        "He put the book on the table.",
        "I see you every day.",
        "She often sleeps in the morning.",
        "He can sleep.",
        "This old man has twenty-one dogs.",
    ],
)
def test_what_a_reader_knows_to_be_right_is_not(breaker, right):
    assert not breaker.is_wrong(right)
