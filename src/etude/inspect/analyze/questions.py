"""Other questions to the same run: other word order, longer lines, other searches, other checkpoints averaged."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from etude.data.batching import Batch
from etude.inspect.analyze.subject import Pair, Subject, Text
from etude.inspect.analyze.sums import Sums, change, length_ratio
from etude.trained.weights import mean_weights

_JOINED = (1, 2, 4)  # pairs in a line
_SHORTEST = 8  # tokens; the first bucket reaches up to here, each further one twice as far


def score_shuffled_order(subject: Subject, text: Text, intact: Sums, *, seed: int) -> dict[str, Any]:
    """Perplexity where the source tokens stand in random order, their end token last, and how much that is more.

    An encoder that takes its sentence for a bag of words gives exactly the same; the more a model relies on order, the
    more it loses.
    """
    generator = np.random.default_rng(seed)
    without = subject.likelihoods(text, lambda batch: shuffle_sources(batch, generator))
    return {"perplexity": without.score, **change(intact, without, seed)}


def shuffle_sources(batch: Batch, generator: np.random.Generator) -> Batch:
    """The batch with the tokens of each source in random order, end token and padding where they were."""
    source = batch.source.clone()
    for row, real in zip(source, batch.source_mask.sum(dim=1).tolist(), strict=True):
        order = torch.from_numpy(generator.permutation(real - 1)).to(row.device)
        row[: real - 1] = row[order]
    return replace(batch, source=source)


def score_searches(
    subject: Subject, text: Text, own: Sums, beams: Sequence[int], alphas: Sequence[float], *, seed: int
) -> Iterator[dict[str, Any]]:
    """Score and length for every beam with every alpha, and the change of the score from the run's `own` search.

    Raises:
        UserError: a beam or an alpha is out of its range.
    """
    for beam in beams:
        for alpha in alphas:
            found = subject.translations(text, beam=beam, alpha=alpha)
            searched = {"beam": beam, "alpha": alpha, subject.metric: found.score}
            yield searched | change(own, found, seed) | {"length_ratio": length_ratio(found)}


def score_averages(subject: Subject, text: Text, own: Sums, *, seed: int) -> Iterator[dict[str, Any]]:
    """Perplexity and score of the mean of the last checkpoint, of the last two, and so on (section 6.1).

    Nothing where the run kept none (`averaging.checkpoints`); perplexity changes from the weights that it ended with.

    Raises:
        UserError: a checkpoint is torn.
    """
    files = sorted(subject.run.checkpoint.parent.glob("step-*.ckpt"))
    mean = replace(subject, model=deepcopy(subject.model))
    for count in range(1, len(files) + 1):
        mean.model.load_state_dict(mean_weights(files[-count:]))
        found = mean.likelihoods(text)
        averaged = {"checkpoints": count, "perplexity": found.score}
        score = {mean.metric: mean.translations(text).score} if mean.metric else {}
        yield averaged | change(own, found, seed) | score


def score_by_length(subject: Subject, text: Text, longest_trained: int | None) -> Iterator[dict[str, Any]]:
    """Perplexity and score by bucket of source length: of the pairs themselves, then of two and of four joined.

    Few texts hold sentences longer than any in training. Where they are lacking, neighbouring pairs are joined, source
    to source and reference to reference. Such a line is no harder word by word, but a model that has never seen a
    sentence end in the middle loses by that too: the joined lines that are no longer than those trained on show how
    much. Those longer than the run's limit, `budget.max_tokens`, are left out: its model need not know such positions.
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
    lengths = [[len(tokens) for tokens in subject.tokenizer.encode_all(side)] for side in sides]
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
            "perplexity": likelihoods.among(rows).score,
            subject.metric: translations.among(rows).score,
        }


def bucket_ends(lengths: np.ndarray) -> np.ndarray:
    """The longest length that shares a bucket with each: 8, 16, 32, and so on."""
    doublings = np.ceil(np.log2(np.maximum(lengths, _SHORTEST) / _SHORTEST)).astype(int)
    return _SHORTEST * 2**doublings
