"""Head importance by removal."""

import pytest

from etude.inspect.analyze.removal import score_removals


def asked(subject, text, **how):
    return list(score_removals(subject, text, subject.likelihoods(text), **{"with_bleu": False, "seed": 1} | how))


@pytest.mark.parametrize("attention", ["multi_head", "grouped_query", "local"])
def test_every_head_is_asked_about_once(analysed, attention):
    subject, text = analysed(f"model/attention={attention}")
    found = [(row["attention"], row["layer"], row["head"]) for row in asked(subject, text)]
    kinds = ("encoder", "decoder", "cross")
    assert found == [(kind, layer, head) for kind in kinds for layer in (1, 2) for head in (1, 2, 3, 4)]


def test_removal_costs_what_zero_rows_of_w_o_cost(analysed):
    subject, text = analysed()
    intact = subject.likelihoods(text).perplexity
    row = next(r for r in asked(subject, text) if (r["attention"], r["layer"], r["head"]) == ("cross", 2, 3))
    d_v = 16 // 4
    subject.model.decoder[1].cross_attention.out_proj.weight.data[:, 2 * d_v : 3 * d_v] = 0.0
    expected = subject.likelihoods(text).perplexity
    assert row["perplexity"] == pytest.approx(expected)
    assert row["change"] == pytest.approx(expected - intact)
    low, high = row["interval"]
    assert low < row["change"] < high


def test_a_head_that_says_nothing_is_not_missed(analysed):
    subject, text = analysed()
    subject.model.encoder[0].attention.v_proj.weight.data[:4] = 0.0  # d_v = 4: the first head
    first, second = asked(subject, text)[:2]
    assert (first["change"], first["interval"]) == (0.0, (0.0, 0.0))
    assert second["change"] != 0.0


def test_bleu_is_told_where_it_is_asked_for(analysed, pairs):
    subject, _ = analysed("model.n_layers=1", "model.heads=1", "decoding=greedy")
    text = subject.text(pairs[:4])
    assert all(row["bleu"] is None for row in asked(subject, text))
    assert all(0 <= row["bleu"] <= 100 for row in asked(subject, text, with_bleu=True))
