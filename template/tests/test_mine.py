"""What the parts of this folder promise: python -m pytest"""

import pytest
from mine.data import Reversal

from etude.tasks.claims import check_claims, own_parts


@pytest.mark.parametrize("part", own_parts())
def test_a_part_looks_at_no_later_token_nor_at_padding_and_decodes_step_by_step_as_at_once(part):
    check_claims(part)


def test_every_target_is_its_source_from_right_to_left():
    corpus = Reversal(seed=1, train_pairs=9, valid_pairs=9, test_pairs=9, longest=12, vocab_size=20)
    for source, target in corpus.pairs("train"):
        assert target == source[::-1]


def test_a_split_is_the_same_text_each_time_and_no_other_split_s():
    corpus = Reversal(seed=1, train_pairs=9, valid_pairs=9, test_pairs=9, longest=12, vocab_size=20)
    assert list(corpus.pairs("train")) == list(corpus.pairs("train")) != list(corpus.pairs("test"))
