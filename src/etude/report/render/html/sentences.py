"""The translations that a page shows: the ones on which the arms differ most; and BLEU by source length."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.report.scores import TestSet
from etude.report.statistics import Counts
from etude.tasks.bleu_sums import corpus_bleu

ROOM = 500_000  # bytes of text in a page, for any size of the test set
BUCKETS = 5


def samples(test_set: TestSet, said: Mapping[str, Sequence[str]], counts: Mapping[str, Counts], baseline: str) -> Any:
    """Choose the sentences on which the arms differ most, up to `ROOM`.

    Args:
        test_set: the sentences.
        said: arm -> the translations of its first run.
        counts: arm -> the BLEU statistics of its runs.
        baseline: the name of the baseline.

    Returns:
        `of`: the number of sentences in the test set. `sentences`: for each chosen one `source`, `reference`, `said` (a
        list of [translation, sentence BLEU] without repetitions) and `by` (arm -> index in that list).
    """
    scores = {arm: corpus_bleu(counts[arm].counts[0], effective_order=True) for arm in said}
    kept, room = [], ROOM
    for index in _rank(scores, baseline):
        translations = list(dict.fromkeys(lines[index] for lines in said.values()))
        by = {arm: translations.index(lines[index]) for arm, lines in said.items()}
        score = {at: round(float(scores[arm][index]), 1) for arm, at in by.items()}
        source = test_set.sources[index] if test_set.sources else ""
        room -= sum(len(text.encode()) + 16 for text in (source, test_set.references[index], *translations))
        room -= sum(len(arm) + 6 for arm in by)
        if room < 0:
            break
        scored = [[text, score[at]] for at, text in enumerate(translations)]
        kept.append({"source": source, "reference": test_set.references[index], "said": scored, "by": by})
    return {"of": test_set.sentences, "sentences": kept}


def buckets(sources: Sequence[str]) -> list[tuple[str, NDArray[np.intp]]]:
    """Group sentences by the words of their source in buckets of similar size: (label, indices of the sentences)."""
    if not sources:
        return []
    words = np.array([len(source.split()) for source in sources])
    edges = np.unique(np.quantile(words, np.linspace(0, 1, BUCKETS + 1)[1:], method="inverted_cdf"))
    found, low = [], int(words.min())
    for high in edges.astype(int):
        label = f"{low}" if low == high else f"{low}–{high}"
        found.append((label, np.flatnonzero((words >= low) & (words <= high))))
        low = int(high) + 1
    return found


def bucket_bleu(counts: Counts, sentences: Sequence[NDArray[np.intp]]) -> list[float]:
    """Compute the corpus BLEU of each bucket, the mean over the runs of the arm."""
    return [round(float(corpus_bleu(counts.counts[:, some].sum(axis=1)).mean()), 2) for some in sentences]


def _rank(scores: Mapping[str, NDArray[np.float64]], baseline: str) -> list[int]:
    """Order the sentences by how much the arms differ on them.

    Several rankings take turns: by the spread over all arms, and for each arm by its gain and by its loss against the
    baseline. Sentences on which all arms score the same are left out.
    """
    every = np.stack(list(scores.values()))
    spread = np.ptp(every, axis=0)
    held = scores.get(baseline, every.mean(axis=0))
    gains = [sign * (score - held) for arm, score in scores.items() if arm != baseline for sign in (1, -1)]
    rankings = [np.argsort(-gain, kind="stable")[: int((gain > 0).sum())] for gain in (spread, *gains)]
    turns = (index for turn in zip_longest(*rankings) for index in turn if index is not None)
    return [int(index) for index in dict.fromkeys(turns)]
