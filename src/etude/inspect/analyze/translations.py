"""Translations with the n-grams that each sentence adds to BLEU, so that two searches can be compared on sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etude.inspect.analyze.change import score
from etude.tasks.bleu_sums import corpus_bleu, sums


@dataclass(frozen=True)
class Translations:
    """Of n sentences.

    Attributes:
        lines: the translations.
        counts: what each brings to BLEU (n, 10), as `etude.tasks.bleu_sums` counts it.
    """

    lines: list[str]
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.lines)

    def scores(self, times: np.ndarray) -> np.ndarray:
        """sacreBLEU of S samples in which each sentence occurs so many `times` (S, n): (S,)."""
        return corpus_bleu(times @ self.counts)

    @property
    def bleu(self) -> float:
        """Over all sentences together."""
        return score(self)

    @property
    def length_ratio(self) -> float:
        """Words for each word of the references, as BLEU counts words."""
        words, of_references = self.counts.sum(axis=0)[:2]
        return float(words / of_references)

    def among(self, rows: np.ndarray) -> "Translations":
        """Of the sentences `rows` alone."""
        return Translations([self.lines[row] for row in rows], self.counts[rows])


def compare_translations(lines: Sequence[str], references: Sequence[str]) -> Translations:
    """Translations with what they have in common with the references, line by line."""
    return Translations(list(lines), sums([lines], references)[0])
