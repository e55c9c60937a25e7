"""What the parts of this folder promise: python -m pytest"""

import torch
from mine.data import Reversal

from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.tasks import build


def test_gated_attention_of_the_decoder_looks_at_no_later_token():
    model = build.model(resolve_valid(compose(["model/attention=gated"])), vocab_size=40).eval()
    source, target = torch.randint(4, 40, (2, 7)), torch.randint(4, 40, (2, 7))
    changed = target.clone()
    changed[:, 4:] = 4
    logits = [model(source, torch.ones_like(source, dtype=torch.bool), words) for words in (target, changed)]
    torch.testing.assert_close(logits[0][:, :4], logits[1][:, :4])


def test_every_target_is_its_source_from_right_to_left():
    corpus = Reversal(seed=1, train_pairs=9, valid_pairs=9, test_pairs=9, longest=12, vocab_size=20)
    for source, target in corpus.pairs("train"):
        assert target == source[::-1]


def test_a_split_is_the_same_text_each_time_and_no_other_split_s():
    corpus = Reversal(seed=1, train_pairs=9, valid_pairs=9, test_pairs=9, longest=12, vocab_size=20)
    assert list(corpus.pairs("train")) == list(corpus.pairs("train")) != list(corpus.pairs("test"))
