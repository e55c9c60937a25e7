"""Is this sentence grammatical? English sentences of the grammar, in every other of which one thing is wrong.

How it is known that a sentence is outside the grammar: `broken.py`.
"""

from collections.abc import Iterator
from hashlib import blake2b
from random import Random

from etude.data.corpus import Corpus, Pair, digest
from etude.data.grammar import GrammarCorpus
from etude.data.grammar.broken import Breaker
from etude.data.grammar.lexicon import shipped

VERSION = 1
"""Of the sentences that are wrong. Raise it when a change makes others of them."""

YES, NO = "yes", "no"


class Grammaticality(Corpus):
    """Sentences with "yes" or "no"; with the same `seed` the same ones on every machine.

    They are those of `GrammarCorpus`, divided among the splits as they are there, and every second one of a split is
    made wrong. One sentence in five cannot be made so that it is known; such a one is left out where its turn comes.
    """

    def __init__(self, *, seed: int, train_pairs: int, valid_pairs: int, test_pairs: int, vocab_size: int) -> None:
        self.languages = ("en", "en")
        self.vocab_size = vocab_size
        self._seed = seed
        self._sizes = {"train": train_pairs, "valid": valid_pairs, "test": test_pairs}
        enough = {f"{split}_pairs": 2 * size for split, size in self._sizes.items()}
        self._grammar = GrammarCorpus(seed=seed, vocab_size=vocab_size, **enough)

    def fingerprint(self) -> str:
        """A hash of that of the sentences and of this version."""
        return digest([VERSION, self._grammar.fingerprint()])

    def training_fingerprint(self) -> str:
        """The same without how many sentences are tested on."""
        return digest([VERSION, self._grammar.training_fingerprint()])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Sentences that belong to `split`, and whether they are grammatical.

        Raises:
            UserError: there is no such split.
        """
        breaker = Breaker(shipped())
        random = Random(int.from_bytes(blake2b(f"{self._seed} {split} wrong".encode(), digest_size=8).digest()))
        sentences = (sentence for sentence, _ in self._grammar.pairs(split))
        wrong = (broken for sentence in sentences if (broken := breaker.break_sentence(sentence, random)))
        for row in range(self._sizes.get(split, 1)):
            yield (next(wrong), NO) if row % 2 else (next(sentences), YES)
