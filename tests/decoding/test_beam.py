"""Beam search against exhaustive search, against a plain one written with lists, and against the real model."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from etude.decoding.beam import BeamSearch, Hypothesis, NoNumbers
from etude.errors import UserError

BOS, EOS = 1, 2
SENTENCES = 3
PROPERTY = settings(max_examples=60, deadline=None)

seeds = st.integers(0, 2**31)
vocab_sizes = st.integers(5, 6)
alphas = st.floats(0, 2)
spreads = st.floats(0.3, 4)
longest_answers = st.integers(1, 4)  # the end token counted


def batch(sentences: list[int], lengths: list[int] | None = None) -> tuple[Tensor, Tensor]:
    """Sources whose first token says which sentence of a table is meant."""
    lengths = lengths or [1] * len(sentences)
    source = torch.zeros(len(sentences), max(lengths), dtype=torch.long)
    source[:, 0] = torch.tensor(sentences)
    return source, torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def searched(model: Any, search: BeamSearch, sentences: int = SENTENCES) -> list[list[Hypothesis]]:
    return search(model, *batch(list(range(sentences))))


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def rescored(model: Any, sentence: int, tokens: tuple[int, ...], alpha: float) -> float:
    return model.log_probability(sentence, tokens) / penalty(len(tokens) + 1, alpha)


def greedy(model: Any, sentence: int, longest: int) -> tuple[int, ...]:
    """The most probable piece at each step."""
    tokens: list[int] = []
    state = model.start(*batch([sentence]))
    last = BOS
    while len(tokens) < longest - 1:
        logits = model.step(torch.tensor([last]), state)[0]
        last = EOS + int(logits[EOS:].argmax())
        if last == EOS:
            break
        tokens.append(last)
    return tuple(tokens)


def plain_search(
    model: Any, sentence: int, beam: int, alpha: float, longest: int
) -> list[tuple[tuple[int, ...], float]]:
    """The rules of `BeamSearch` for one sentence, with lists, best first; no hypothesis is given up."""
    alive: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    vocab_size = model.logits.size(-1)
    for length in range(1, longest + 1):
        candidates = []
        for total, tokens in alive:
            prefix = 0
            for token in tokens:
                prefix = prefix * vocab_size + token - EOS
            log_probabilities = model.logits[sentence, prefix].double().log_softmax(dim=-1).tolist()
            allowed = range(EOS, EOS + 1 if length == longest else vocab_size)
            candidates += [(total + log_probabilities[token], (*tokens, token)) for token in allowed]
        candidates.sort(reverse=True)
        ended = [c for c in candidates[:beam] if c[1][-1] == EOS]
        finished += [(total / penalty(length, alpha), tokens[:-1]) for total, tokens in ended]
        if ended and beam == 1:
            break
        alive = [c for c in candidates if c[1][-1] != EOS][:beam]
    return [(tokens, score) for score, tokens in sorted(finished, reverse=True)]


@PROPERTY
@given(seed=seeds, vocab_size=vocab_sizes, alpha=alphas, spread=spreads, longest=longest_answers)
def test_a_beam_that_prunes_nothing_finds_what_exhaustive_search_finds(
    table_model: Any, seed: int, vocab_size: int, alpha: float, spread: float, longest: int
) -> None:
    model = table_model.random(seed, sentences=SENTENCES, vocab_size=vocab_size, longest=longest, spread=spread)
    answers = list(model.answers(longest))
    search = BeamSearch(beam=len(answers), alpha=alpha, max_len_offset=longest - 1)
    for sentence, hypotheses in enumerate(searched(model, search)):
        best = max(answers, key=lambda tokens: rescored(model, sentence, tokens, alpha))
        assert hypotheses[0].score == pytest.approx(rescored(model, sentence, best, alpha), abs=1e-5)
        assert hypotheses[0].tokens == best


@PROPERTY
@given(seed=seeds, beam=st.integers(1, 5), alpha=alphas, spread=spreads, longest=longest_answers)
def test_scores_are_those_of_the_returned_tokens_and_never_above_exhaustive_search(
    table_model: Any, seed: int, beam: int, alpha: float, spread: float, longest: int
) -> None:
    model = table_model.random(seed, sentences=SENTENCES, vocab_size=6, longest=longest, spread=spread)
    search = BeamSearch(beam=beam, alpha=alpha, max_len_offset=longest - 1)
    for sentence, hypotheses in enumerate(searched(model, search)):
        best = max(rescored(model, sentence, tokens, alpha) for tokens in model.answers(longest))
        assert hypotheses[0].score <= best + 1e-5
        for hypothesis in hypotheses:
            assert hypothesis.score == pytest.approx(rescored(model, sentence, hypothesis.tokens, alpha), abs=1e-5)
            assert hypothesis.log_probability == pytest.approx(
                model.log_probability(sentence, hypothesis.tokens), abs=1e-5
            )


@PROPERTY
@given(seed=seeds, beam=st.integers(1, 5), alpha=alphas, spread=spreads, longest=longest_answers, data=st.data())
def test_as_many_translations_as_are_asked_for_are_the_best_and_the_first_is_that_of_a_search_for_one(
    table_model: Any, seed: int, beam: int, alpha: float, spread: float, longest: int, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, beam))
    model = table_model.random(seed, sentences=SENTENCES, vocab_size=6, longest=longest, spread=spread)
    search = BeamSearch(beam=beam, alpha=alpha, max_len_offset=longest - 1)
    for sentence, hypotheses in enumerate(search(model, *batch([*range(SENTENCES)]), n_best=n)):
        expected = plain_search(model, sentence, beam, alpha, longest)[:n]
        assert [one.tokens for one in hypotheses[:n]] == [tokens for tokens, _ in expected]
        assert [one.score for one in hypotheses[:n]] == pytest.approx([score for _, score in expected], abs=1e-5)


@PROPERTY
@given(seed=seeds, alpha=alphas, spread=spreads, longest=longest_answers)
def test_a_beam_of_one_is_greedy_search(table_model: Any, seed: int, alpha: float, spread: float, longest: int) -> None:
    model = table_model.random(seed, sentences=SENTENCES, vocab_size=6, longest=longest, spread=spread)
    search = BeamSearch(beam=1, alpha=alpha, max_len_offset=longest - 1)
    for sentence, hypotheses in enumerate(searched(model, search)):
        assert [h.tokens for h in hypotheses] == [greedy(model, sentence, longest)]


@PROPERTY
@given(seed=seeds, beam=st.integers(1, 6), order=st.permutations(range(6)), data=st.data())
def test_an_answer_does_not_depend_on_the_batch(
    table_model: Any, seed: int, beam: int, order: list[int], data: st.DataObject
) -> None:
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=6, max_size=6))
    model = table_model.random(seed, sentences=6, vocab_size=6, longest=5, spread=2.0)
    search = BeamSearch(beam=beam, alpha=0.6, max_len_offset=1)
    together = search(model, *batch(order, [lengths[i] for i in order]))
    for sentence, hypotheses in zip(order, together, strict=True):
        assert search(model, *batch([sentence], [lengths[sentence]])) == [hypotheses]


@PROPERTY
@given(seed=seeds, beam=st.integers(1, 8), alpha=alphas, spread=spreads)
def test_hypotheses_are_distinct_best_first_and_at_most_as_many_as_the_beam(
    table_model: Any, seed: int, beam: int, alpha: float, spread: float
) -> None:
    model = table_model.random(seed, sentences=SENTENCES, vocab_size=6, longest=4, spread=spread)
    for hypotheses in searched(model, BeamSearch(beam=beam, alpha=alpha, max_len_offset=3)):
        scores = [h.score for h in hypotheses]
        assert 1 <= len(hypotheses) <= beam
        assert scores == sorted(scores, reverse=True)
        assert len({h.tokens for h in hypotheses}) == len(hypotheses)


def ladder(table_model: Any, probabilities: dict[tuple[int, ...], dict[int, float]], longest: int = 4) -> Any:
    """A model of one sentence that gives each prefix the stated probabilities, all others a ten-millionth."""
    vocab_size = 6
    logits = torch.full((1, vocab_size**longest, vocab_size), 1e-7).log()
    for tokens, following in probabilities.items():
        prefix = 0
        for token in tokens:
            prefix = prefix * vocab_size + token - EOS
        for token, probability in following.items():
            logits[0, prefix, token] = math.log(probability)
    return table_model(logits)


def test_the_search_goes_on_after_the_first_finished_hypothesis(table_model: Any) -> None:
    # "end" is the most probable first token, but "4 4 4 end" has the better score under a strong length penalty.
    chain = {(): {EOS: 0.55, 4: 0.45}, (4,): {4: 1.0}, (4, 4): {4: 1.0}, (4, 4, 4): {EOS: 1.0}}
    model = ladder(table_model, chain)
    longer, first = searched(model, BeamSearch(beam=2, alpha=2.0, max_len_offset=3), 1)[0][:2]
    assert longer.tokens == (4, 4, 4)
    assert first.tokens == ()


def test_greedy_search_is_done_when_the_end_is_most_probable(table_model: Any) -> None:
    chain = {(): {EOS: 0.55, 4: 0.45}, (4,): {4: 1.0}, (4, 4): {4: 1.0}, (4, 4, 4): {EOS: 1.0}}
    hypotheses = searched(ladder(table_model, chain), BeamSearch(beam=1, alpha=2.0, max_len_offset=3), 1)[0]
    assert [h.tokens for h in hypotheses] == [()]


def test_a_finished_hypothesis_is_not_dropped_while_others_go_on(table_model: Any) -> None:
    chain = {(): {EOS: 0.4, 4: 0.35, 5: 0.25}, (4,): {4: 0.6, 5: 0.4}, (5,): {4: 0.5, 5: 0.5}}
    chain |= {(a, b): {EOS: 1.0} for a in (4, 5) for b in (4, 5)}
    assert searched(ladder(table_model, chain), BeamSearch(beam=2, alpha=0.0, max_len_offset=3), 1)[0][0].tokens == ()


def test_endings_do_not_starve_the_beam(table_model: Any) -> None:
    # In the second step the whole beam of two ends; the third candidate still goes on, and wins.
    chain = {
        (): {4: 0.5, 5: 0.5},
        (4,): {EOS: 0.4, 4: 0.35, 5: 0.25},
        (5,): {EOS: 0.4, 4: 0.3, 5: 0.3},
        (4, 4): {EOS: 1.0},
    }
    hypotheses = searched(ladder(table_model, chain), BeamSearch(beam=2, alpha=2.0, max_len_offset=3), 1)[0]
    assert hypotheses[0].tokens == (4, 4)


def test_the_length_penalty_counts_the_end_token(table_model: Any) -> None:
    model = ladder(table_model, {(): {4: 1.0}, (4,): {EOS: 0.5, 5: 0.5}})
    best = searched(model, BeamSearch(beam=2, alpha=0.6, max_len_offset=1), 1)[0][0]
    assert best.tokens == (4,)
    assert best.score == pytest.approx(math.log(0.5) / (7 / 6) ** 0.6, abs=1e-5)


def test_a_translation_that_never_wants_to_end_has_the_longest_length_allowed(table_model: Any) -> None:
    model = table_model(torch.tensor([0.0, 0.0, -50.0, 0.0, 1.0, 0.0]).expand(2, 6**6, 6))
    lengths = [1, 3]
    answers = BeamSearch(beam=3, alpha=0.6, max_len_offset=2)(model, *batch([0, 1], lengths))
    assert [len(hypotheses[0].tokens) + 1 for hypotheses in answers] == [length + 2 for length in lengths]


def test_padding_and_start_are_never_generated_and_cost_their_probability(table_model: Any) -> None:
    model = table_model(torch.tensor([5.0, 6.0, 0.0, 0.0, 1.0]).expand(1, 5**4, 5))
    for hypothesis in searched(model, BeamSearch(beam=4, alpha=0.6, max_len_offset=3), 1)[0]:
        assert not {0, 1, 2} & set(hypothesis.tokens)
        expected = model.log_probability(0, hypothesis.tokens)
        assert hypothesis.log_probability == pytest.approx(expected, abs=1e-4)


def test_hopeless_hypotheses_leave_the_batch(table_model: Any) -> None:
    # The end is all but certain after one token: nothing else is worth a second look.
    model = ladder(table_model, {(): {4: 0.9, 5: 0.1}, (4,): {EOS: 0.999}, (5,): {EOS: 0.999}})
    searched(model, BeamSearch(beam=2, alpha=0.6, max_len_offset=3), 1)
    assert model.rows_asked == 1 + 2


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_model_gone_astray_is_told_though_other_translations_have_numbers(table_model: Any, value: float) -> None:
    model = ladder(table_model, {(): {4: 0.6, 5: 0.4}, (4,): {EOS: 1.0}, (5,): {EOS: 1.0}})
    model.logits[0, 4 - EOS] = value
    with pytest.raises(NoNumbers, match="its `step` should give what `forward` gives"):
        searched(model, BeamSearch(beam=2, alpha=0.6, max_len_offset=3), 1)


def test_a_model_that_gives_no_translation_a_probability_yields_the_empty_hypothesis(table_model: Any) -> None:
    model = ladder(table_model, {(): {4: 0.6, 5: 0.4}})
    model.logits[:, :, EOS] = -math.inf
    assert searched(model, BeamSearch(beam=2, alpha=0.6, max_len_offset=2), 1) == [
        [Hypothesis((), -math.inf, -math.inf)]
    ]


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_a_sentence_without_a_translation_yields_the_empty_hypothesis_beside_others_too(
    table_model: Any, beam: int
) -> None:
    model = table_model.random(3, sentences=2, vocab_size=6, longest=3, spread=1.0)
    search = BeamSearch(beam=beam, alpha=0.6, max_len_offset=2)
    _, beside = searched(model, search, 2)
    model.logits[0, :, EOS] = -math.inf
    assert searched(model, search, 2) == [[Hypothesis((), -math.inf, -math.inf)], beside]


def test_a_source_of_padding_alone_has_a_translation_no_longer_than_its_limit(table_model: Any) -> None:
    model = table_model.random(3, sentences=2, vocab_size=6, longest=4, spread=1.0)
    (blank,), other = BeamSearch(beam=2, alpha=0.0, max_len_offset=0)(model, *batch([0, 1], [0, 3]))
    assert blank.tokens == ()
    assert blank.log_probability == pytest.approx(model.log_probability(0, ()), abs=1e-5)
    assert max(len(hypothesis.tokens) for hypothesis in other) <= 2


@pytest.mark.parametrize(("key", "value"), [("beam", 0), ("alpha", -0.1), ("alpha", math.nan), ("max_len_offset", -1)])
def test_an_argument_out_of_range_is_named(key: str, value: float) -> None:
    arguments: dict[str, Any] = {"beam": 4, "alpha": 0.6, "max_len_offset": 50} | {key: value}
    with pytest.raises(UserError, match=rf"decoding\.{key} is .*at least"):
        BeamSearch(**arguments)
