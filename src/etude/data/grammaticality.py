"""Grammaticality judgements: English sentences of the grammar, every second one with one error.

`broken.py` explains why a sentence with an error is known to be outside the grammar.
"""

from collections.abc import Iterator
from hashlib import blake2b
from random import Random

from etude.data.corpus import Corpus, Pair, digest
from etude.data.grammar import GrammarCorpus
from etude.data.grammar.broken import Breaker
from etude.data.grammar.lexicon import shipped

VERSION = 1
"""The version of the wrong sentences. Increase it when a change alters any of them."""

YES, NO = "yes", "no"


class Grammaticality(Corpus):
    """Sentences labelled "yes" or "no"; the same `seed` gives the same sentences on every machine.

    They are the sentences of `GrammarCorpus`, in the same splits, and every second one of a split is made wrong. One
    sentence in five cannot be made provably wrong; it is skipped where a wrong one is due.
    """

    def __init__(self, *, seed: int, train_pairs: int, valid_pairs: int, test_pairs: int, vocab_size: int) -> None:
        self.languages = ("en", "en")
        self.vocab_size = vocab_size
        self._seed = seed
        self._sizes = {"train": train_pairs, "valid": valid_pairs, "test": test_pairs}
        enough = {f"{split}_pairs": 2 * size for split, size in self._sizes.items()}
        self._grammar = GrammarCorpus(seed=seed, vocab_size=vocab_size, **enough)

    def fingerprint(self) -> str:
        """Hash the fingerprint of the sentences and this version."""
        return digest([VERSION, self._grammar.fingerprint()])

    def training_fingerprint(self) -> str:
        """Hash the same without the number of test sentences."""
        return digest([VERSION, self._grammar.training_fingerprint()])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield sentences of `split`, with YES or NO for whether they are grammatical.

        Raises:
            UserError: there is no such split.
        """
        breaker = Breaker(shipped())
        random = Random(int.from_bytes(blake2b(f"{self._seed} {split} wrong".encode(), digest_size=8).digest()))
        sentences = (sentence for sentence, _ in self._grammar.pairs(split))
        wrong = (broken for sentence in sentences if (broken := breaker.break_sentence(sentence, random)))
        for row in range(self._sizes.get(split, 1)):
            yield (next(wrong), NO) if row % 2 else (next(sentences), YES)
