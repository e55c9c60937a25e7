"""BLEU taken apart into what each sentence brings, so that corpora can be put together anew without scoring again.

Corpus BLEU needs ten sums over sentences (Papineni et al. 2002, section 2.3): the lengths of translation and reference,
and for n = 1 to 4 how many n-grams match and how many there are. Resampling sentences is adding up their ten numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LONGEST = 4  # words that an n-gram has at most


def sums(runs: Sequence[Sequence[str]], references: Sequence[str]) -> NDArray[np.float64]:
    """What each sentence brings, counted as sacreBLEU does by default: cased, 13a tokens, one reference a sentence.

    Args:
        runs: R times the translations of the same N sentences, plain and detokenised.
        references: of these sentences.

    Returns:
        (R, N, 10), whole numbers: words of the translation, words of the reference, matching 1- to 4-grams, 1- to
        4-grams of the translation.

    Raises:
        ValueError: there are not as many translations as references.
    """
    if any(len(translations) != len(references) for translations in runs):
        raise ValueError("there are not as many translations as references")
    known: dict[str, int] = {}
    wanted = _Words.of(references, lambda word: known.setdefault(word, len(known)))
    orders = _ngrams(wanted, len(known) + 1)
    rows = []
    for translations in runs:
        found = _Words.of(translations, lambda word: known.get(word, len(known)))  # one number for all other words
        totals = [np.maximum(found.lengths - n, 0) for n in range(_LONGEST)]
        rows.append(
            np.stack([found.lengths, wanted.lengths, *_matches(found, orders, len(known) + 1), *totals], axis=1)
        )
    return np.array(rows, dtype=np.float64)


@dataclass(frozen=True)
class _Words:
    """The words of N lines, one behind the other."""

    lengths: NDArray[np.int64]  # (N,) words of each line
    numbers: NDArray[np.int64]  # (W,) equal for equal words
    lines: NDArray[np.int64]  # (W,) where each stands
    left: NDArray[np.int64]  # (W,) how many there are from here to the end of the line

    @classmethod
    def of(cls, lines: Sequence[str], number: Callable[[str], int]) -> "_Words":
        """The lines in tokens 13a, which are sacreBLEU's own."""
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

        tokenize = Tokenizer13a()
        words = [tokenize(line.rstrip()).split() for line in lines]
        lengths = np.array([len(each) for each in words], dtype=np.int64)
        numbers = np.fromiter((number(word) for each in words for word in each), dtype=np.int64)
        ends = np.repeat(lengths.cumsum(), lengths)
        return cls(lengths, numbers, np.repeat(np.arange(len(lines)), lengths), ends - np.arange(len(numbers)))


class _Ngrams(NamedTuple):
    """The n-grams of one length that the references have, those of all lines together.

    An n-gram is a number: that of its first n - 1 words, or of its line where there are none, times the number of
    different words, and its last word. They are sorted, and known in the next length by their place.
    """

    ngrams: NDArray[np.int64]  # (G,)
    often: NDArray[np.int64]  # (G,) how often its line has it
    owners: NDArray[np.int64]  # (G,) whose it is


def _ngrams(references: _Words, base: int) -> list[_Ngrams]:
    """Of each length."""
    orders = []
    heads, starts = references.lines, np.arange(len(references.numbers))
    owners = np.arange(len(references.lengths))
    for n in range(_LONGEST):
        there = references.left[starts] > n
        heads, starts = heads[there], starts[there]
        ngrams, heads, often = np.unique(
            heads * base + references.numbers[starts + n], return_inverse=True, return_counts=True
        )
        owners = owners[ngrams // base]
        orders.append(_Ngrams(ngrams, often, owners))
    return orders


def _matches(translations: _Words, orders: list[_Ngrams], base: int) -> list[NDArray[np.int64]]:
    """For each length (N,): how many n-grams of a translation its reference has too, each as often as that at most."""
    matches = []
    heads, starts = translations.lines, np.arange(len(translations.numbers))
    for n, (ngrams, often, owners) in enumerate(orders):
        there = translations.left[starts] > n
        heads, starts = heads[there], starts[there]
        wanted = heads * base + translations.numbers[starts + n]
        places = np.searchsorted(ngrams, wanted)
        met = np.append(ngrams, -1)[places] == wanted  # what is not met has no longer n-gram that is
        heads, starts = places[met], starts[met]
        shared = np.minimum(np.bincount(heads, minlength=len(ngrams)), often)
        matches.append(np.bincount(owners, weights=shared, minlength=len(translations.lengths)).astype(np.int64))
    return matches


def corpus_bleu(sums: NDArray[np.float64], effective_order: bool = False) -> NDArray[np.float64]:
    """BLEU of corpora whose counts were added up, smoothed as sacreBLEU does by default.

    The k-th order without a match counts as 1 / 2^k matches (Chen & Cherry 2014, method 3); a corpus with no match at
    all, or without an n-gram of every order, scores 0.

    Args:
        sums: (..., 10) as `sums` gives them, added up over sentences.
        effective_order: only the orders of n-gram that there are take part, as sacreBLEU scores single sentences.

    Returns:
        (...) 0 to 100.
    """
    columns = np.ascontiguousarray(np.moveaxis(sums, -1, 0))  # NumPy adds whole arrays faster than rows of four
    translated, referenced, matches, totals = columns[0], columns[1], columns[2:6], columns[6:]
    there, missed = totals > 0, matches == 0
    smoothed = np.where(missed, 0.5 ** (missed & there).cumsum(axis=0), matches) if missed.any() else matches
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(there, np.log(smoothed / totals), 0).sum(axis=0) / there.sum(axis=0)
        scores = 100 * np.exp(np.minimum(0, 1 - referenced / translated)) * np.exp(logs)
    return np.where((effective_order | there.all(axis=0)) & ~missed.all(axis=0), scores, 0.0)
