"""The embedded treebank: English sentences of the grammar and the trees that they were derived by.

The source is the words, punctuation apart; the target their tree as one line (`etude.data.trees`). Words do not
determine it by themselves: "that" begins a relative clause or a report, "when" a question or a subordinate clause, and
how many brackets close together is told by what was opened long before.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from random import Random

from etude.data.corpus import Pair, digest
from etude.data.grammar import VERSION, GrammarCorpus
from etude.data.grammar.brackets import leaves

TREES_VERSION = 1
"""Of the trees. Raise it when a change of the grammar changes one and no sentence."""

_TAGS = {",": ",", ".": ".", "?": "."}


class Treebank(GrammarCorpus):
    """The sentences of the grammar of the same seed, parsed; behind them `silver` times as many with silver trees.

    Those stand for the trees of an automatic parser: a constituent is missing from them with the probability
    `silver_errors`.
    """

    def __init__(
        self,
        *,
        seed: int,
        train_pairs: int,
        silver: int,
        silver_errors: float,
        valid_pairs: int,
        test_pairs: int,
        vocab_size: int,
    ) -> None:
        super().__init__(
            seed=seed,
            train_pairs=train_pairs * (1 + silver),
            valid_pairs=valid_pairs,
            test_pairs=test_pairs,
            vocab_size=vocab_size,
        )
        self.languages = ("en", "tree")
        self.gold, self.silver_errors = train_pairs, silver_errors

    def _fingerprint(self, splits: Sequence[str]) -> str:
        """A hash of seed, sizes, and the versions of sentences and trees."""
        silver = [self.gold, self.silver_errors] if self.gold < self.sizes["train"] else []
        return digest([VERSION, TREES_VERSION, self.seed, {split: self.sizes[split] for split in splits}, *silver])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Words and tree of each sentence that belongs to `split`; gold trees come before silver ones."""
        for index, (tree, _) in enumerate(self.derivations(split)):
            is_silver = split == "train" and index >= self.gold
            yield " ".join(leaves(tree)), linear(tree, self.silver_errors if is_silver else 0.0)


def linear(tree: str, errors: float = 0.0) -> str:
    """The line of a tree of the grammar, each constituent but the outermost left out with the probability `errors`."""
    random = Random(int.from_bytes(blake2b(tree.encode(), digest_size=8).digest()))
    line: list[str] = []
    opened: list[str] = []  # labels; "" where one is left out
    for token in tree.split(" "):
        if token == ")":
            line += [f"){label}"] if (label := opened.pop()) else []
        elif token.startswith("("):
            opened.append("" if opened and random.random() < errors else token[1:])
            line += [token] if opened[-1] else []
        else:
            line.append(_TAGS.get(token, "XX"))
    return " ".join(line)
