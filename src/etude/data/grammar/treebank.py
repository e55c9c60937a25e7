"""The embedded treebank: English sentences of the grammar, with the trees that they were derived by.

The source is the tokenised sentence; the target is its tree on one line (`etude.data.trees`). Single words do not
determine the tree: "that" begins a relative clause or a report, "when" a question or a subordinate clause, and the
number of brackets that close together depends on brackets that were opened long before.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from random import Random

from etude.data.corpus import Pair, digest
from etude.data.grammar import VERSION, GrammarCorpus
from etude.data.grammar.brackets import leaves

TREES_VERSION = 1
"""The version of the trees. Increase it when a change of the grammar changes a tree, but no sentence."""

_TAGS = {",": ",", ".": ".", "?": "."}


class Treebank(GrammarCorpus):
    """The sentences of a `GrammarCorpus` with the same seed, with trees; then `silver` times as many with silver trees.

    Silver trees imitate the output of an automatic parser: each constituent is missing with the probability
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

    def fingerprint_of(self, splits: Sequence[str]) -> str:
        """Hash the seed, the sizes and the versions of sentences and trees."""
        silver = [self.gold, self.silver_errors] if self.gold < self.sizes["train"] else []
        return digest([VERSION, TREES_VERSION, self.seed, {split: self.sizes[split] for split in splits}, *silver])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the words and the tree of each sentence of a split; gold trees come before silver ones."""
        for index, (tree, _) in enumerate(self.derivations(split)):
            is_silver = split == "train" and index >= self.gold
            yield " ".join(leaves(tree)), linear(tree, self.silver_errors if is_silver else 0.0)


def linear(tree: str, errors: float = 0.0) -> str:
    """Write a tree on one line; each constituent but the outermost is left out with the probability `errors`."""
    random = Random(int.from_bytes(blake2b(tree.encode(), digest_size=8).digest()))
    line: list[str] = []
    opened: list[str] = []  # labels; "" for a constituent that is left out
    for token in tree.split(" "):
        if token == ")":
            line += [f"){label}"] if (label := opened.pop()) else []
        elif token.startswith("("):
            opened.append("" if opened and random.random() < errors else token[1:])
            line += [token] if opened[-1] else []
        else:
            line.append(_TAGS.get(token, "XX"))
    return " ".join(line)
