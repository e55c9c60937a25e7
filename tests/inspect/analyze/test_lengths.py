"""Perplexity and BLEU by length, and the joined lines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.inspect.analyze.lengths import bucket_ends, join_neighbours, score_by_length


@given(length=st.integers(1, 5000))
def test_a_bucket_reaches_twice_as_far_as_the_one_before(length):
    [end] = bucket_ends(np.array([length]))
    assert end in {8 * 2**n for n in range(12)}
    assert length <= end
    assert end == 8 or length > end // 2


def test_neighbours_are_joined_source_to_source_and_reference_to_reference(analysed, pairs):
    subject, text = analysed()
    lines = join_neighbours(subject, text, 2)
    assert lines[0] == (f"{pairs[0][0]} {pairs[1][0]}", f"{pairs[0][1]} {pairs[1][1]}")
    assert lines[1][0].startswith(pairs[2][0])
    assert len(lines) == 15


def test_what_is_too_long_for_the_run_is_left_out(analysed):
    subject, text = analysed("budget.target_tokens=14")
    lines = [line for pair in join_neighbours(subject, text, 2) for line in pair]
    assert 0 < len(lines) < 30
    assert max(map(len, subject.tokenizer.encode_all(lines))) <= 13


def test_buckets_together_are_the_whole_text(analysed):
    subject, text = analysed()
    rows = [row for row in score_by_length(subject, text, None) if row["joined"] == 1]
    assert sum(row["sentences"] for row in rows) == 30
    assert len(rows) > 1
    found = subject.likelihoods(text)
    for row in rows:
        low, high = row["pieces"]
        inside = np.flatnonzero((text.source_lengths >= low) & (text.source_lengths <= high))
        assert row["sentences"] == len(inside)
        assert row["perplexity"] == pytest.approx(found.among(inside).perplexity)


def test_what_is_longer_than_the_longest_trained_is_counted(analysed):
    subject, text = analysed()
    known = list(score_by_length(subject, text, 9))
    assert sum(row["longer_than_trained"] for row in known if row["joined"] == 1) == (text.source_lengths > 9).sum()
    assert {row["joined"] for row in known} == {1, 2, 4}
    assert all(row["longer_than_trained"] is None for row in score_by_length(subject, text, None))
