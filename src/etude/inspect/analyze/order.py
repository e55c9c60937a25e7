"""Does the model use the order of the source? The words of each sentence are shuffled, and the target is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from etude.data.batching import Batch
from etude.inspect.analyze.change import change
from etude.inspect.analyze.likelihood import SentenceNll
from etude.inspect.analyze.subject import Subject, Text


def score_shuffled_order(subject: Subject, text: Text, intact: SentenceNll, *, seed: int) -> dict[str, Any]:
    """Perplexity where the source pieces stand in random order, their end token last, and how much that is more.

    An encoder that takes its sentence for a bag of words gives exactly the same; the more a model relies on order, the
    more it loses.
    """
    generator = np.random.default_rng(seed)
    without = subject.likelihoods(text, lambda batch: shuffle_sources(batch, generator))
    risen, interval = change(intact, without, seed)
    return {"perplexity": without.perplexity, "change": risen, "interval": interval}


def shuffle_sources(batch: Batch, generator: np.random.Generator) -> Batch:
    """The batch with the pieces of each source in random order, end token and padding where they were."""
    source = batch.source.clone()
    for row, real in zip(source, batch.source_mask.sum(dim=1).tolist(), strict=True):
        order = torch.from_numpy(generator.permutation(real - 1)).to(row.device)
        row[: real - 1] = row[order]
    return replace(batch, source=source)
