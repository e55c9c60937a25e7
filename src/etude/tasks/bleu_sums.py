"""The sufficient statistics of BLEU for each sentence, from which the BLEU of any resampled corpus is computed.

Corpus BLEU needs ten sums over sentences (Papineni et al. 2002, section 2.3): the lengths of translation and reference,
and for n = 1 to 4 the number of matching n-grams and of all n-grams. To score a resampled corpus, the ten numbers of
its sentences are added up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from etude.tasks.bleu import splitter

_MAX_ORDER = 4  # words of the longest n-grams


def sums(
    runs: Sequence[Sequence[str]], references: Sequence[str], tokenize: str = "13a", lowercase: bool = False
) -> NDArray[np.float64]:
    """Count the statistics of each sentence as sacreBLEU does, with one reference per sentence.

    Args:
        runs: the translations of the same N sentences by each of R runs, plain and detokenised.
        references: the references of these sentences.
        tokenize, lowercase: how lines are compared; see `etude.tasks.bleu`.

    Returns:
        (R, N, 10), whole numbers: words of the translation, words of the reference, matching 1- to 4-grams, 1- to
        4-grams of the translation.

    Raises:
        ValueError: there are not as many translations as references.
        UserError: sacreBLEU lacks what it needs to split lines so.
    """
    if any(len(translations) != len(references) for translations in runs):
        raise ValueError("there are not as many translations as references")
    split = splitter(tokenize)
    if lowercase:
        runs, references = [[line.lower() for line in lines] for lines in runs], [line.lower() for line in references]
    known: dict[str, int] = {}
    ours = _Words.tokenize(references, split, lambda word: known.setdefault(word, len(known)))
    orders = _ngrams(ours, len(known) + 1)
    rows = []
    for translations in runs:
        # All words that no reference has share one number.
        theirs = _Words.tokenize(translations, split, lambda word: known.get(word, len(known)))
        totals = [np.maximum(theirs.lengths - n, 0) for n in range(_MAX_ORDER)]
        matches = _matches(theirs, orders, len(known) + 1)
        rows.append(np.stack([theirs.lengths, ours.lengths, *matches, *totals], axis=1))
    return np.array(rows, dtype=np.float64)


@dataclass(frozen=True)
class _Words:
    """The words of N lines, concatenated."""

    lengths: NDArray[np.int64]  # (N,) words of each line
    numbers: NDArray[np.int64]  # (W,) equal for equal words
    lines: NDArray[np.int64]  # (W,) the line of each word
    left: NDArray[np.int64]  # (W,) words from this one to the end of its line

    @classmethod
    def tokenize(cls, lines: Sequence[str], split: Callable[[str], str], number: Callable[[str], int]) -> "_Words":
        """Tokenize lines with a tokenizer of sacreBLEU's; `number` maps a word to its number."""
        words = [split(line.rstrip()).split() for line in lines]
        lengths = np.array([len(each) for each in words], dtype=np.int64)
        numbers = np.fromiter((number(word) for each in words for word in each), dtype=np.int64)
        ends = np.repeat(lengths.cumsum(), lengths)
        return cls(lengths, numbers, np.repeat(np.arange(len(lines)), lengths), ends - np.arange(len(numbers)))


class _Ngrams(NamedTuple):
    """The n-grams of one length of all reference lines.

    Each n-gram of a line has a code: head * base + (number of its last word). The head of a 1-gram is its line; the
    head of a longer one is the index of its first n - 1 words among the sorted codes of that length.
    """

    ngrams: NDArray[np.int64]  # (G,) codes, sorted
    counts: NDArray[np.int64]  # (G,) how often the n-gram occurs in its line
    lines: NDArray[np.int64]  # (G,) the line


def _ngrams(references: _Words, base: int) -> list[_Ngrams]:
    """Collect the n-grams of each length from 1 to 4; `base` is above every word's number."""
    orders = []
    heads, starts = references.lines, np.arange(len(references.numbers))
    lines = np.arange(len(references.lengths))
    for n in range(_MAX_ORDER):
        complete = references.left[starts] > n
        heads, starts = heads[complete], starts[complete]
        ngrams, heads, counts = np.unique(
            heads * base + references.numbers[starts + n], return_inverse=True, return_counts=True
        )
        lines = lines[ngrams // base]
        orders.append(_Ngrams(ngrams, counts, lines))
    return orders


def _matches(translations: _Words, orders: list[_Ngrams], base: int) -> list[NDArray[np.int64]]:
    """Count, for each length, the n-grams (N,) of each translation that match its reference, clipped to its counts."""
    matches = []
    heads, starts = translations.lines, np.arange(len(translations.numbers))
    for n, (ngrams, counts, lines) in enumerate(orders):
        complete = translations.left[starts] > n
        heads, starts = heads[complete], starts[complete]
        codes = heads * base + translations.numbers[starts + n]
        indices = np.searchsorted(ngrams, codes)
        matched = np.append(ngrams, -1)[indices] == codes
        heads, starts = indices[matched], starts[matched]  # only a match can be the head of a longer match
        clipped = np.minimum(np.bincount(heads, minlength=len(ngrams)), counts)
        matches.append(np.bincount(lines, weights=clipped, minlength=len(translations.lengths)).astype(np.int64))
    return matches


def corpus_bleu(sums: NDArray[np.float64], effective_order: bool = False) -> NDArray[np.float64]:
    """Compute BLEU from statistics that were added up over a corpus, smoothed as sacreBLEU does by default.

    The k-th order without a match counts as 1 / 2^k matches (Chen & Cherry 2014, method 3); a corpus with no match at
    all, or without an n-gram of every order, scores 0.

    Args:
        sums: (..., 10) as the function `sums` returns them, added up over sentences.
        effective_order: whether orders without an n-gram are left out, as sacreBLEU does for single sentences.

    Returns:
        (...), 0 to 100.
    """
    columns = np.ascontiguousarray(np.moveaxis(sums, -1, 0))  # NumPy adds whole arrays faster than rows of four
    translated, referenced, matches, totals = columns[0], columns[1], columns[2:6], columns[6:]
    there, missed = totals > 0, matches == 0
    smoothed = np.where(missed, 0.5 ** (missed & there).cumsum(axis=0), matches) if missed.any() else matches
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(there, np.log(smoothed / totals), 0).sum(axis=0) / there.sum(axis=0)
        scores = 100 * np.exp(np.minimum(0, 1 - referenced / translated)) * np.exp(logs)
    return np.where((effective_order | there.all(axis=0)) & ~missed.all(axis=0), scores, 0.0)
