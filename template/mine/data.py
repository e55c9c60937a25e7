"""A dataset of my own: conf/data/reversal.yaml names the class below."""

from collections.abc import Iterator
from random import Random

from etude.data.corpus import Corpus, Pair, digest


class Reversal(Corpus):
    """Lines of letters, to be written from right to left.

    Args:
        seed: which lines.
        train_pairs, valid_pairs, test_pairs: how many.
        longest: letters of the longest line.
        vocab_size: of the tokenizer.
    """

    def __init__(
        self, *, seed: int, train_pairs: int, valid_pairs: int, test_pairs: int, longest: int, vocab_size: int
    ) -> None:
        self.seed, self.longest, self.vocab_size = seed, longest, vocab_size
        self.sizes = {"train": train_pairs, "valid": valid_pairs, "test": test_pairs}
        self.languages = ("letters", "reversed")

    def fingerprint(self) -> str:
        """Of all that decides the text; a number more when the code below yields another text."""
        return digest(["reversal", 1, self.seed, self.longest, self.sizes])

    def pairs(self, split: str) -> Iterator[Pair]:
        """The lines of a split, always the same."""
        random = Random(f"{self.seed} {split}")
        for _ in range(self.sizes[split]):
            letters = random.choices("abcdefgh", k=random.randint(6, self.longest))
            yield " ".join(letters), " ".join(reversed(letters))
