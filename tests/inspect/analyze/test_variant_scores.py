"""Other word order, longer lines, other searches and other averages of the same run."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from etude.config import parts
from etude.data.tokenizer import EOS
from etude.inspect.analyze.variant_scores import (
    bucket_ends,
    join_neighbours,
    score_averages,
    score_by_length,
    score_searches,
    score_shuffled_order,
    shuffle_sources,
)
from etude.tasks import build
from etude.tasks.bleu import bleu


def probe(subject, text):
    return score_shuffled_order(subject, text, subject.likelihoods(text), seed=3)


def test_an_encoder_without_positions_does_not_notice(analysed):
    subject, text = analysed("model/position=none")
    found = probe(subject, text)
    assert found["perplexity"] == pytest.approx(subject.likelihoods(text).score, rel=1e-5)
    assert found["change"] == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rope", "alibi", "shaw", "t5"])
def test_an_encoder_with_positions_does(analysed, position):
    subject, text = analysed(f"model/position={position}")
    assert abs(probe(subject, text)["change"]) > 1e-3  # without positions it is ten times nearer to zero


def test_it_shuffles_pieces_and_leaves_ends_padding_and_targets(analysed):
    _, text = analysed()
    for batch in text.batches:
        mixed = shuffle_sources(batch, np.random.default_rng(0))
        assert torch.equal(mixed.source.sort(dim=1).values, batch.source.sort(dim=1).values)
        assert torch.equal(mixed.source == EOS, batch.source == EOS)
        assert torch.equal(mixed.source == 0, batch.source == 0)
        assert mixed.target_in is batch.target_in
    assert any(not torch.equal(shuffle_sources(b, np.random.default_rng(0)).source, b.source) for b in text.batches)


def test_the_seed_decides_the_order(analysed):
    subject, text = analysed()
    assert probe(subject, text) == probe(subject, text)


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
    found, own = subject.likelihoods(text), subject.translations(text)
    rows = [row for row in score_by_length(subject, text, found, own, None) if row["joined"] == 1]
    assert sum(row["sentences"] for row in rows) == 30
    assert len(rows) > 1
    for row in rows:
        low, high = row["pieces"]
        inside = np.flatnonzero((text.source_lengths >= low) & (text.source_lengths <= high))
        assert row["sentences"] == len(inside)
        assert row["perplexity"] == pytest.approx(found.among(inside).score)


def test_what_is_longer_than_the_longest_trained_is_counted(analysed):
    subject, text = analysed()
    scores = subject.likelihoods(text), subject.translations(text)
    known = list(score_by_length(subject, text, *scores, 9))
    assert sum(row["longer_than_trained"] for row in known if row["joined"] == 1) == (text.source_lengths > 9).sum()
    assert {row["joined"] for row in known} == {1, 2, 4}
    assert all(row["longer_than_trained"] is None for row in score_by_length(subject, text, *scores, None))


def test_every_beam_meets_every_alpha_and_the_runs_own_search_is_no_change(analysed):
    subject, text = analysed("decoding.beam=2", "decoding.alpha=0.6")
    own = subject.translations(text)
    rows = list(score_searches(subject, text, own, [1, 2], [0, 0.6], seed=1))
    search = parts.make(subject.config["decoding"])
    lines = build.translator(subject.config, subject.model, subject.tokenizer, search).translate(text.sources)
    assert [(row["beam"], row["alpha"]) for row in rows] == [(1, 0), (1, 0.6), (2, 0), (2, 0.6)]
    assert rows[-1]["bleu"] == pytest.approx(bleu(lines, text.references)["score"])
    assert (rows[-1]["change"], rows[-1]["interval"]) == (0.0, (0.0, 0.0))


def test_alpha_is_nothing_to_greedy_search_and_lengthens_what_a_beam_finds(analysed):
    subject, text = analysed("seed=3")  # a model whose translations end by themselves
    own = subject.translations(text)
    ratio = {
        (r["beam"], r["alpha"]): r["length_ratio"] for r in score_searches(subject, text, own, [1, 4], [0, 2.0], seed=1)
    }
    assert ratio[1, 0] == ratio[1, 2.0]
    assert ratio[4, 0] < ratio[4, 2.0]


def keep(subject, step, weights):
    folder = subject.run.checkpoint.parent
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"state_dict": {f"model.{k}": v for k, v in weights.items()}}, folder / f"step-{step:08}.ckpt")


def test_averages_are_those_of_weights_and_not_of_answers(analysed, pairs):
    subject, _ = analysed("averaging.checkpoints=2", "averaging.every=1", "budget.max_steps=10")
    text = subject.text(pairs[:8])
    own = subject.likelihoods(text)
    last = {name: value.clone() for name, value in subject.model.state_dict().items()}
    before = {name: value + 0.1 * torch.randn_like(value) for name, value in last.items()}
    for alias in ("source_table", "target_table", "output_table"):  # one matrix under three names
        before[f"embedding.{alias}.weight"] = before["embedding.source_table.weight"]
    keep(subject, 5, before)  # of a shorter training, which this one went on from
    keep(subject, 9, before)
    keep(subject, 10, last)
    one, two = score_averages(subject, text, own, seed=1)
    assert (one["checkpoints"], two["checkpoints"]) == (1, 2)
    assert one["perplexity"] == pytest.approx(own.score)
    assert one["change"] == pytest.approx(0.0, abs=1e-6)
    assert torch.equal(
        subject.model.state_dict()["encoder.layers.0.attention.q_proj.weight"],
        last["encoder.layers.0.attention.q_proj.weight"],
    )
    subject.model.load_state_dict({name: (last[name] + before[name]) / 2 for name in last})
    assert two["perplexity"] == pytest.approx(subject.likelihoods(text).score, rel=1e-5)
    assert two["change"] == pytest.approx(two["perplexity"] - own.score)


def test_a_run_that_kept_no_checkpoints_has_no_averages(analysed):
    subject, text = analysed()
    assert list(score_averages(subject, text, subject.likelihoods(text), seed=1)) == []
