"""How does the model fare with longer sentences, up to such as it was never trained on?

Few texts hold sentences longer than any in training. Where they are lacking, neighbouring pairs are joined, source to
source and reference to reference. Such a line is no harder word by word, but a model that has never seen a sentence end
in the middle loses by that too. The joined lines that are no longer than those trained on show how much.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from etude.inspect.analyze.subject import Pair, Subject, Text

_JOINED = (1, 2, 4)  # pairs in a line
_SHORTEST = 8  # pieces; the first bucket reaches up to here, each further one twice as far


def score_by_length(subject: Subject, text: Text, longest_trained: int | None) -> Iterator[dict[str, Any]]:
    """Perplexity and BLEU by bucket of source length: of the pairs themselves, then of two and of four joined.

    Joined lines longer than the run's limit, `budget.max_tokens`, are left out: its model need not know such positions.
    """
    for count in _JOINED:
        pairs = join_neighbours(subject, text, count)
        if pairs:
            for bucket in _buckets(subject, subject.text(pairs) if count > 1 else text, longest_trained):
                yield {"joined": count, **bucket}


def join_neighbours(subject: Subject, text: Text, count: int) -> list[Pair]:
    """Each `count` neighbouring pairs as one, where that is not too long for the run on either side."""
    starts = range(0, len(text.sources) - count + 1, count)
    sides = [[" ".join(side[at : at + count]) for at in starts] for side in (text.sources, text.references)]
    lengths = [[len(pieces) for pieces in subject.tokenizer.encode_all(side)] for side in sides]
    fitting = [max(both) <= subject.longest_line for both in zip(*lengths, strict=True)]
    return [pair for pair, fits in zip(zip(*sides, strict=True), fitting, strict=True) if fits]


def _buckets(subject: Subject, text: Text, longest_trained: int | None) -> Iterator[dict[str, Any]]:
    likelihoods, translations = subject.likelihoods(text), subject.translations(text)
    ends = bucket_ends(text.source_lengths)
    for end in np.unique(ends).tolist():
        rows = np.flatnonzero(ends == end)
        longer = None if longest_trained is None else int((text.source_lengths[rows] > longest_trained).sum())
        yield {
            "pieces": [end // 2 + 1 if end > _SHORTEST else 1, end],
            "sentences": len(rows),
            "longer_than_trained": longer,
            "perplexity": likelihoods.among(rows).perplexity,
            "bleu": translations.among(rows).bleu,
        }


def bucket_ends(lengths: np.ndarray) -> np.ndarray:
    """The longest length that shares a bucket with each: 8, 16, 32, and so on."""
    doublings = np.ceil(np.log2(np.maximum(lengths, _SHORTEST) / _SHORTEST)).astype(int)
    return _SHORTEST * 2**doublings
