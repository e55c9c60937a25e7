"""Scores of a run under changed conditions: shuffled sources, longer lines, other searches, averaged checkpoints."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from etude.data.batching import Batch
from etude.data.corpus import first_reference
from etude.inspect.analyze.subject import Pair, Subject, Text
from etude.inspect.analyze.sums import Sums, change, length_ratio
from etude.trained.weights import averaged_checkpoints, mean_weights

_JOINED = (1, 2, 4)  # pairs in a line
_SHORTEST = 8  # tokens: the end of the first bucket; every further bucket ends at twice the length


def score_shuffled_order(subject: Subject, text: Text, intact: Sums, *, seed: int) -> dict[str, Any]:
    """Compute the perplexity with source tokens in random order, the end token last, and its change from `intact`.

    An encoder that treats its sentence as a bag of words gives the same perplexity; the more a model relies on order,
    the more the perplexity rises.
    """
    generator = np.random.default_rng(seed)
    shuffled = subject.likelihoods(text, lambda batch: shuffle_sources(batch, generator))
    return {"perplexity": shuffled.score, **change(intact, shuffled, seed)}


def shuffle_sources(batch: Batch, generator: np.random.Generator) -> Batch:
    """Shuffle the tokens of each source; end token and padding stay in place."""
    source = batch.source.clone()
    for row, real in zip(source, batch.source_mask.sum(dim=1).tolist(), strict=True):
        order = torch.from_numpy(generator.permutation(real - 1)).to(row.device)
        row[: real - 1] = row[order]
    return replace(batch, source=source)


def score_searches(
    subject: Subject, text: Text, own: Sums, beams: Sequence[int], alphas: Sequence[float], *, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield score and length ratio for every beam with every alpha, and the change from the run's `own` search.

    Raises:
        UserError: a beam or an alpha is out of range.
    """
    for beam in beams:
        for alpha in alphas:
            found = subject.translations(text, beam=beam, alpha=alpha)
            searched = {"beam": beam, "alpha": alpha, subject.metric: found.score}
            yield searched | change(own, found, seed) | {"length_ratio": length_ratio(found)}


def score_averages(subject: Subject, text: Text, own: Sums, *, seed: int) -> Iterator[dict[str, Any]]:
    """Yield perplexity and score of the mean of the last checkpoint, of the last two, and so on (section 6.1).

    Yields nothing if the run kept no checkpoints (`averaging.checkpoints`). The change of perplexity is relative to
    `own`, the run's final weights.

    Raises:
        UserError: a checkpoint is damaged.
    """
    kept = averaged_checkpoints(subject.run, subject.config)  # a shorter training may have left others there
    files = [file for file in kept.values() if file.is_file()]
    mean = replace(subject, model=deepcopy(subject.model))
    for count in range(1, len(files) + 1):
        mean.model.load_state_dict(mean_weights(files[-count:]))
        found = mean.likelihoods(text)
        averaged = {"checkpoints": count, "perplexity": found.score}
        score = {mean.metric: mean.translations(text).score} if mean.metric else {}
        yield averaged | change(own, found, seed) | score


def score_by_length(
    subject: Subject, text: Text, intact: Sums, own: Sums, longest_trained: int | None
) -> Iterator[dict[str, Any]]:
    """Yield perplexity and score by bucket of source length: for single pairs, then for two and for four joined.

    `intact` and `own` are the likelihoods and the translations of `text` as it is.

    Few test sets have sentences longer than all of training, so neighbouring pairs are joined, source to source and
    reference to reference. A joined line is as hard word by word, but a model that has never seen a sentence end in the
    middle of a line loses by that too; the joined lines that are no longer than the training lines show how much. Lines
    longer than `budget.max_tokens` are left out, as the model may not have such positions.
    """
    for count in _JOINED:
        if pairs := join_neighbours(subject, text, count):
            joined = subject.text(pairs) if count > 1 else text
            scores = (subject.likelihoods(joined), subject.translations(joined)) if count > 1 else (intact, own)
            for bucket in _buckets(subject.metric, joined, *scores, longest_trained):
                yield {"joined": count, **bucket}


def join_neighbours(subject: Subject, text: Text, count: int) -> list[Pair]:
    """Join every `count` neighbouring pairs into one; drop those that are too long for the run on either side."""
    starts = range(0, len(text.sources) - count + 1, count)
    sides = [
        [join(side[at : at + count]) for at in starts]
        for join, side in ((" ".join, text.sources), (_join_references, text.references))
    ]
    lines = sides[0], map(first_reference, sides[1])
    tokenizers = subject.tokenizer.source, subject.tokenizer.target
    lengths = [map(len, one.encode_all(side)) for one, side in zip(tokenizers, lines, strict=True)]
    fitting = [max(both) <= subject.longest_line for both in zip(*lengths, strict=True)]
    return [pair for pair, fits in zip(zip(*sides, strict=True), fitting, strict=True) if fits]


def _join_references(lines: Sequence[str]) -> str:
    """Join lines with a space; of several references of each, the first of all, the second, ..."""
    return "\t".join(map(" ".join, zip(*(line.split("\t") for line in lines), strict=False)))


def _buckets(
    metric: str, text: Text, likelihoods: Sums, translations: Sums, longest_trained: int | None
) -> Iterator[dict[str, Any]]:
    ends = bucket_ends(text.source_lengths)
    for end in np.unique(ends).tolist():
        rows = np.flatnonzero(ends == end)
        longer = None if longest_trained is None else int((text.source_lengths[rows] > longest_trained).sum())
        yield {
            "pieces": [end // 2 + 1 if end > _SHORTEST else 1, end],
            "sentences": len(rows),
            "longer_than_trained": longer,
            "perplexity": likelihoods.among(rows).score,
            metric: translations.among(rows).score,
        }


def bucket_ends(lengths: np.ndarray) -> np.ndarray:
    """Return the largest length in the bucket of each length: 8, 16, 32, and so on."""
    doublings = np.ceil(np.log2(np.maximum(lengths, _SHORTEST) / _SHORTEST)).astype(int)
    return _SHORTEST * 2**doublings
