"""BLEU taken apart into what each sentence brings, so that corpora can be put together anew without scoring again.

Corpus BLEU needs ten sums over sentences (Papineni et al. 2002, section 2.3): the lengths of translation and reference,
and for n = 1 to 4 how many n-grams match and how many there are. Resampling sentences is adding up their ten numbers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


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
    from sacrebleu import BLEU

    metric = BLEU(effective_order=True)  # what sacreBLEU wants to be asked for single sentences; it counts the same
    seen: dict[tuple[str, str], list[int]] = {}  # runs agree on many a sentence
    for translations in runs:
        for pair in zip(translations, references, strict=True):
            if pair not in seen:
                score = metric.sentence_score(pair[0], [pair[1]])
                seen[pair] = [score.sys_len, score.ref_len, *score.counts, *score.totals]
    rows = [[seen[pair] for pair in zip(translations, references, strict=True)] for translations in runs]
    return np.array(rows, dtype=np.float64)


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
    translated, referenced, matches, totals = sums[..., 0], sums[..., 1], sums[..., 2:6], sums[..., 6:]
    there, missed = totals > 0, matches == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = np.where(missed, 0.5 ** (missed & there).cumsum(axis=-1), matches) / totals
        logs = np.where(there, np.log(precisions), 0).sum(axis=-1) / there.sum(axis=-1)
        scores = 100 * np.exp(np.minimum(0, 1 - referenced / translated)) * np.exp(logs)
    return np.where((effective_order | there.all(axis=-1)) & ~missed.all(axis=-1), scores, 0.0)
