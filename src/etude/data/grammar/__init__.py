"""The embedded corpus: a synchronous grammar of English and German, written for this project.

A meaning is drawn (`draw_sentences`, `draw_clauses`, `draw_phrases`) and said in both languages (`clauses`) with the
words of `lexicon.txt`, whose forms follow from rules (`english`, `german`).

What there is to learn: gender and case of articles and adjectives; agreement of verbs; German word order, with the verb
second, first or last and the rest of it at the end of the clause; numbers said backwards; and English words with
several translations, told apart by another word anywhere in the sentence: bat, bank, coach, crane, date, letter, match,
pen, plant, seal, know, answer, eat, miss, put, ride, save, spend, stop, watch, hard, short, when, where, it.
English determines German all the same: no source has two targets.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from random import Random

from etude.data.corpus import SPLITS, TRAINING, Corpus, Pair, digest
from etude.data.grammar.brackets import plain
from etude.data.grammar.draw_sentences import SentenceDrawer
from etude.data.grammar.lexicon import shipped
from etude.data.grammar.selection import Selection
from etude.errors import UserError, did_you_mean

VERSION = 1
"""Of the sentences. Raise it when a change of the grammar or the lexicon changes one: runs on the old ones are others.
"""

WORDS = range(4, 23)
"""How many words a sentence may have, on either side."""


class GrammarCorpus(Corpus):
    """As many sentences as are asked for, with the same `seed` the same ones on every machine."""

    drawer = SentenceDrawer
    words = WORDS

    def __init__(self, *, seed: int, train_pairs: int, valid_pairs: int, test_pairs: int, vocab_size: int) -> None:
        self.languages = ("en", "de")
        self.vocab_size = vocab_size
        self.seed = seed
        self.sizes = {"train": train_pairs, "valid": valid_pairs, "test": test_pairs}

    def fingerprint(self) -> str:
        """A hash of seed, sizes, and the version of the sentences; the vocabulary leaves the text alone."""
        return self._fingerprint(SPLITS)

    def training_fingerprint(self) -> str:
        """The same without how many sentences are tested on."""
        return self._fingerprint(TRAINING)

    def _fingerprint(self, splits: Sequence[str]) -> str:
        return digest([VERSION, self.seed, {split: self.sizes[split] for split in splits}])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Sentences that belong to `split`, no source twice.

        Raises:
            UserError: there is no such split.
        """
        return ((plain(tree), target) for tree, target in self.derivations(split))

    def derivations(self, split: str) -> Iterator[Pair]:
        """The same with the English trees (`etude.data.grammar.brackets`) in place of the lines."""
        if split not in SPLITS:
            raise UserError(f"there is no split {split!r}: {did_you_mean(split, SPLITS)}")
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
    """The one split that a German sentence, and so its English source, may appear in.

    Of 16 sentences 1 goes to "valid", 2 to "test", 13 to "train", whatever the seed: what one run trains on, no other
    is tested on.
    """
    share = blake2b(target.encode(), digest_size=1).digest()[0] % 16
    return "valid" if share == 0 else "test" if share <= 2 else "train"
