"""Scores made of sums over sentences, and the interval of their change, against sacreBLEU and simulation."""

import math

import numpy as np
import pytest

from etude.inspect.analyze.sums import Sums, change, length_ratio, perplexity, sum_bleu, sum_brackets
from etude.tasks.bleu import bleu
from etude.tasks.bracket_f1 import bracket_f1
from etude.tasks.perplexity import perplexity as perplexity_of_text
from etude.tasks.perplexity import sum_tokens

REFERENCES = ["the old woman sees the dog .", "a man , who sings , goes home .", "it rains .", "they read a book ."] * 5
LINES = ["the old woman saw the dog .", "a man goes home and sings .", "it rains .", "the book is read ."] * 5


def likelihoods(generator, sentences, worse):
    tokens = generator.integers(3, 20, sentences)
    nats = tokens * generator.normal(1.0, 0.2, sentences)
    more = nats + tokens * generator.normal(worse, 0.1, sentences)
    return tuple(Sums(np.stack([of_them, tokens], axis=1), perplexity) for of_them in (nats, more))


def test_the_likelihoods_of_all_sentences_are_the_perplexity_of_the_text(analysed):
    subject, text = analysed()
    found = subject.likelihoods(text)
    nats, tokens, _ = sum_tokens(subject.model, text.batches)
    assert found.rows.sum(axis=0).tolist() == pytest.approx([nats, tokens])
    assert found.score == pytest.approx(perplexity_of_text(nats, tokens))


def test_each_likelihood_is_that_of_its_own_sentence(analysed, pairs):
    subject, text = analysed()
    found = subject.likelihoods(text)
    for row in (0, 11, 29):
        alone = subject.likelihoods(subject.text([pairs[row]]))
        assert found.rows[row] == pytest.approx(alone.rows[0], rel=1e-5)
        assert found.among(np.array([row])).score == pytest.approx(alone.score, rel=1e-5)


def test_summed_counts_give_the_bleu_that_sacrebleu_gives():
    assert sum_bleu(LINES, REFERENCES).score == pytest.approx(bleu(LINES, REFERENCES)["score"])
    few = np.array([0, 2, 3])
    expected = bleu([LINES[row] for row in few], [REFERENCES[row] for row in few])["score"]
    assert sum_bleu(LINES, REFERENCES).among(few).score == pytest.approx(expected)


def test_translations_that_match_nothing_are_smoothed_as_sacrebleu_does():
    lines = ["nothing here is alike"] * 20
    assert sum_bleu(lines, REFERENCES).score == pytest.approx(bleu(lines, REFERENCES)["score"])


def test_summed_brackets_give_the_f1_of_the_metric():
    gold = ["(TOP (S (NP XX )NP (VP XX (NP XX )NP )VP )S )TOP"] * 3
    told = [gold[0], "(TOP (S (NP XX XX )NP (VP XX )VP )S )TOP", "(TOP (NP XX XX XX )NP )TOP"]
    expected = bracket_f1(told, gold)["score"]
    assert 0 < expected < 100
    assert sum_brackets(told, gold).score == pytest.approx(expected)
    assert length_ratio(sum_brackets(told, gold)) == pytest.approx((4 + 3 + 1) / 12)


def test_the_length_ratio_counts_words_as_bleu_does():
    assert length_ratio(sum_bleu(["one two three"], ["one, two, three"])) == pytest.approx(3 / 5)


def test_nothing_changes_from_a_thing_to_itself():
    own = sum_bleu(LINES, REFERENCES)
    assert change(own, own, seed=1) == {"change": 0.0, "interval": (0.0, 0.0)}


def test_the_interval_holds_the_resampled_changes_of_a_plain_loop():
    before, after = likelihoods(np.random.default_rng(0), 40, 0.05)
    generator = np.random.default_rng(1)
    loop = []
    for _ in range(2000):
        rows = generator.integers(40, size=40)
        loop.append(after.among(rows).score - before.among(rows).score)
    found = change(before, after, seed=1)
    assert found["change"] == pytest.approx(after.score - before.score)
    assert found["interval"] == pytest.approx(np.quantile(loop, [0.025, 0.975]), rel=0.15)


@pytest.mark.slow
def test_the_interval_covers_the_true_change_at_its_nominal_rate():
    """Of 400 test sets from one population, between 91 and 98 % have an interval that holds the population's change."""
    generator = np.random.default_rng(5)
    population, worse = likelihoods(generator, 1_000_000, 0.02)
    truth = worse.score - population.score
    held = 0
    for seed in range(400):
        low, high = change(*likelihoods(generator, 100, 0.02), seed=seed)["interval"]
        held += low <= truth <= high
    assert 0.91 <= held / 400 <= 0.98


def test_one_sentence_has_no_interval():
    one = np.array([0])
    before, after = (made.among(one) for made in likelihoods(np.random.default_rng(0), 9, 0.1))
    found = change(before, after, seed=1)
    assert found["change"] == after.score - before.score
    assert all(map(math.isnan, found["interval"]))


def test_scores_of_different_sentences_are_not_compared():
    before, after = likelihoods(np.random.default_rng(0), 9, 0.1)
    with pytest.raises(ValueError, match="9 and 2 sentences"):
        change(before, after.among(np.array([0, 1])), seed=1)
