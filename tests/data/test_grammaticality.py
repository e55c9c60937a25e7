"""The embedded corpus of sentences with their labels."""

from collections import Counter

import pytest

from etude.config.compose import compose
from etude.config.parts import make
from etude.config.resolve import resolve
from etude.data.corpus import SPLITS, digest
from etude.data.grammaticality import Grammaticality
from etude.errors import UserError

SIZES = {"train_pairs": 300, "valid_pairs": 40, "test_pairs": 50}


def corpus(**changed: int) -> Grammaticality:
    return Grammaticality(**{"seed": 1, "vocab_size": 500} | SIZES | changed)


def test_it_has_the_sizes_asked_for_half_of_them_wrong_and_no_sentence_twice():
    for split in SPLITS:
        pairs = list(corpus().pairs(split))
        assert len(pairs) == SIZES[f"{split}_pairs"]
        assert Counter(label for _, label in pairs) == {"yes": len(pairs) // 2, "no": len(pairs) // 2}
        assert len({sentence for sentence, _ in pairs}) == len(pairs)


def test_the_text_of_version_1_stays_what_it_is():
    """Runs on it are told apart by version: whoever changes a sentence raises `VERSION`, and this digest."""
    assert digest([[*corpus().pairs(split)] for split in SPLITS]) == "ddd9331dd20b6a58"


def test_the_fingerprint_follows_the_text():
    assert corpus().fingerprint() == corpus(vocab_size=7).fingerprint()
    assert len({corpus().fingerprint(), corpus(seed=2).fingerprint(), corpus(test_pairs=51).fingerprint()}) == 3
    assert corpus(test_pairs=51).training_fingerprint() == corpus().training_fingerprint()
    assert corpus(seed=2).training_fingerprint() != corpus().training_fingerprint()
    assert list(corpus(seed=2).pairs("valid")) != list(corpus().pairs("valid"))


def test_a_split_that_is_none_is_refused():
    with pytest.raises(UserError, match="there is no split 'dev'"):
        next(corpus().pairs("dev"))


def test_the_config_makes_one():
    assert isinstance(make(resolve(compose(["task=classification"]))["data"]), Grammaticality)
