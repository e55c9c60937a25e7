"""Translations with the n-grams that each sentence adds to BLEU, so that two searches can be compared on sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sacrebleu

from etude.analyze.change import score

_ORDERS = 4  # of n-grams


@dataclass(frozen=True)
class Translations:
    """Of n sentences.

    Attributes:
        lines: the translations.
        counts: matching n-grams of orders 1 to 4, n-grams of orders 1 to 4, words, words of the reference: (n, 10).
    """

    lines: list[str]
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.lines)

    def scores(self, times: np.ndarray) -> np.ndarray:
        """sacreBLEU of S samples in which each sentence occurs so many `times` (S, n): (S,)."""
        return np.array([_bleu(sums) for sums in (times @ self.counts).tolist()])

    @property
    def bleu(self) -> float:
        """Over all sentences together."""
        return score(self)

    @property
    def length_ratio(self) -> float:
        """Words for each word of the references, as BLEU counts words."""
        words, of_references = self.counts.sum(axis=0)[-2:]
        return float(words / of_references)

    def among(self, rows: np.ndarray) -> "Translations":
        """Of the sentences `rows` alone."""
        return Translations([self.lines[row] for row in rows], self.counts[rows])


def compared(lines: Sequence[str], references: Sequence[str]) -> Translations:
    """Translations with what they have in common with the references, line by line."""
    metric = sacrebleu.BLEU(effective_order=True)  # which changes a sentence's own score, and not what is counted
    found = [metric.sentence_score(line, [reference]) for line, reference in zip(lines, references, strict=True)]
    return Translations(list(lines), np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in found]))


def _bleu(sums: list[int]) -> float:
    """Corpus BLEU of summed counts, smoothed as sacreBLEU does where nobody says otherwise."""
    matching, ngrams, (words, of_reference) = sums[:_ORDERS], sums[_ORDERS:-2], sums[-2:]
    return float(sacrebleu.BLEU.compute_bleu(matching, ngrams, words, of_reference, smooth_method="exp").score)
