"""The embedded corpus: a synchronous grammar of English and German, written for this project.

A meaning is drawn at random (`draw_sentences`, `draw_clauses`, `draw_phrases`) and expressed in both languages
(`clauses`) with the words of `lexicon.txt`, which are inflected by rules (`english`, `german`).

A model has to learn: gender and case of articles and adjectives; agreement of verbs; German word order, with the finite
verb second, first or last and the rest of the verb at the end of the clause; numbers with the ones before the tens; and
English words with several translations, which another word anywhere in the sentence disambiguates: bat, bank, coach,
crane, date, letter, match, pen, plant, seal, know, answer, eat, miss, put, ride, save, spend, stop, watch, hard, short,
when, where, it. English always determines German: no source has two targets.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from random import Random

from etude.data.corpus import Pair, SplitCorpus, digest
from etude.data.grammar.brackets import plain
from etude.data.grammar.draw_sentences import SentenceDrawer
from etude.data.grammar.lexicon import shipped
from etude.data.grammar.selection import Selection

VERSION = 1
"""The version of the sentences, a part of the fingerprint. Increase it when a change of the grammar or the lexicon
changes a sentence."""

WORDS = range(4, 23)
"""The allowed number of words of a sentence, in each language."""


class GrammarCorpus(SplitCorpus):
    """A corpus of any number of sentences; the same `seed` gives the same sentences on every machine."""

    drawer = SentenceDrawer
    words = WORDS

    def __init__(self, *, seed: int, train_pairs: int, valid_pairs: int, test_pairs: int, vocab_size: int) -> None:
        self.languages = ("en", "de")
        self.vocab_size = vocab_size
        self.seed = seed
        self.sizes = {"train": train_pairs, "valid": valid_pairs, "test": test_pairs}

    def fingerprint_of(self, splits: Sequence[str]) -> str:
        """Hash the seed, the sizes and the version of the sentences, but not the vocabulary size."""
        return digest([VERSION, self.seed, {split: self.sizes[split] for split in splits}])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the sentence pairs of a split; no source occurs twice."""
        return ((plain(tree), target) for tree, target in self.derivations(split))

    def derivations(self, split: str) -> Iterator[Pair]:
        """Yield the same pairs with English trees (`etude.data.grammar.brackets`) in place of English lines."""
        state = int.from_bytes(blake2b(f"{self.seed} {split}".encode(), digest_size=8).digest())
        drawer = self.drawer(Selection(shipped()), Random(state))
        seen: set[str] = set()
        while len(seen) < self.sizes[split]:
            tree, target = drawer.sentence()
            source = plain(tree)
            is_fit = all(line.count(" ") + 1 in self.words for line in (source, target))
            if is_fit and source not in seen and split_of(target) == split:
                seen.add(source)
                yield tree, target


def split_of(target: str) -> str:
    """Return the split that a German sentence and its English source belong to, for any seed.

    Of 16 sentences, 1 goes to "valid", 2 to "test" and 13 to "train". So no run is tested on a sentence that another
    run was trained on.
    """
    share = blake2b(target.encode(), digest_size=1).digest()[0] % 16
    return "valid" if share == 0 else "test" if share <= 2 else "train"
