"""The sufficient statistics of BLEU for each sentence, from which the BLEU of any resampled corpus is computed.

Corpus BLEU needs ten sums over sentences (Papineni et al. 2002, section 2.3): the lengths of translation and reference,
and for n = 1 to 4 the number of matching n-grams and of all n-grams. To score a resampled corpus, the ten numbers of
its sentences are added up.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from etude.tasks.bleu import make_bleu, reference_streams


def sums(
    runs: Sequence[Sequence[str]], references: Sequence[str], tokenize: str = "13a", lowercase: bool = False
) -> NDArray[np.float64]:
    """Count the statistics of each sentence with sacreBLEU.

    Args:
        runs: the translations of the same N sentences by each of R runs, plain and detokenised.
        references: the references of these sentences; of several, those of a sentence have tabs between them.
        tokenize, lowercase: how lines are compared; see `etude.tasks.bleu`.

    Returns:
        (R, N, 10), whole numbers: words of the translation, words of the reference
        whose length is closest, matching 1- to 4-grams, 1- to
        4-grams of the translation.

    Raises:
        ValueError: there are not as many translations as references.
        UserError: sacreBLEU lacks what it needs to split lines so.
    """
    if any(len(translations) != len(references) for translations in runs):
        raise ValueError("there are not as many translations as references")
    # Given here, the n-grams of the references are counted once for all runs.
    metric = make_bleu(tokenize, lowercase=lowercase, references=reference_streams(references))
    return np.array([metric._extract_corpus_statistics(lines, None) for lines in runs], dtype=np.float64)


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
