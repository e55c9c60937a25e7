"""Other searches and other averages of the same run."""

import pytest
import torch

from etude.inspect.analyze.averages import score_averages
from etude.inspect.analyze.decoding import score_searches
from etude.tasks.bleu import bleu


def test_every_beam_meets_every_alpha_and_the_runs_own_search_is_no_change(analysed):
    subject, text = analysed("decoding.beam=2", "decoding.alpha=0.6")
    own = subject.translations(text)
    rows = list(score_searches(subject, text, own, [1, 2], [0, 0.6], seed=1))
    assert [(row["beam"], row["alpha"]) for row in rows] == [(1, 0), (1, 0.6), (2, 0), (2, 0.6)]
    assert rows[-1]["bleu"] == pytest.approx(bleu(own.lines, text.references).score)
    assert (rows[-1]["change"], rows[-1]["interval"]) == (0.0, (0.0, 0.0))


def test_alpha_is_nothing_to_greedy_search_and_lengthens_what_a_beam_finds(analysed):
    subject, text = analysed()
    own = subject.translations(text)
    ratio = {
        (r["beam"], r["alpha"]): r["length_ratio"] for r in score_searches(subject, text, own, [1, 4], [0, 2.0], seed=1)
    }
    assert ratio[1, 0] == ratio[1, 2.0]
    assert ratio[4, 0] < ratio[4, 2.0]


def keep(subject, step, weights):
    folder = subject.run.checkpoint.parent
    folder.mkdir(exist_ok=True)
    torch.save({"state_dict": {f"model.{k}": v for k, v in weights.items()}}, folder / f"step-{step:08}.ckpt")


def test_averages_are_those_of_weights_and_not_of_answers(analysed, pairs):
    subject, _ = analysed()
    text = subject.text(pairs[:8])
    own = subject.likelihoods(text)
    last = {name: value.clone() for name, value in subject.model.state_dict().items()}
    before = {name: value + 0.1 * torch.randn_like(value) for name, value in last.items()}
    for alias in ("source_table", "target_table", "output_table"):  # one matrix under three names
        before[f"embedding.{alias}.weight"] = before["embedding.source_table.weight"]
    keep(subject, 9, before)
    keep(subject, 10, last)
    one, two = score_averages(subject, text, own, seed=1)
    assert (one["checkpoints"], two["checkpoints"]) == (1, 2)
    assert one["perplexity"] == pytest.approx(own.perplexity)
    assert one["change"] == pytest.approx(0.0, abs=1e-6)
    assert torch.equal(
        subject.model.state_dict()["encoder.0.attention.q_proj.weight"], last["encoder.0.attention.q_proj.weight"]
    )
    subject.model.load_state_dict({name: (last[name] + before[name]) / 2 for name in last})
    assert two["perplexity"] == pytest.approx(subject.likelihoods(text).perplexity, rel=1e-5)
    assert two["change"] == pytest.approx(two["perplexity"] - own.perplexity)


def test_a_run_that_kept_no_checkpoints_has_no_averages(analysed):
    subject, text = analysed()
    assert list(score_averages(subject, text, subject.likelihoods(text), seed=1)) == []
