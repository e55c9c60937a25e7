"""What each sentence adds to a corpus score, so that two ways of asking can be compared sentence by sentence."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from etude.data.batching import Batch
from etude.data.tokenizer import PAD
from etude.tasks import bleu_sums
from etude.tasks.bracket_f1 import count_brackets

_SAMPLES = 1000


@dataclass(frozen=True)
class Sums:
    """A corpus score made of sums over n sentences.

    Attributes:
        rows: what each sentence adds, (n, k).
        corpus: from sums (..., k) to scores (...).
    """

    rows: np.ndarray
    corpus: Callable[[np.ndarray], np.ndarray]

    @property
    def score(self) -> float:
        """Of every sentence once."""
        return float(self.corpus(self.rows.sum(axis=0)))

    def among(self, sentences: np.ndarray) -> "Sums":
        """Of some sentences alone."""
        return replace(self, rows=self.rows[sentences])


def change(before: Sums, after: Sums, seed: int) -> dict[str, Any]:
    """By how much the score changes, and under "interval" the 95 % interval of that over sentences.

    The interval holds the middle of a paired bootstrap (Koehn 2004): sentences are drawn with replacement, the same for
    both. The weights are taken as they are; another seed of training is another question. From one sentence there is no
    interval: it is NaN.

    Raises:
        ValueError: they are not of equally many sentences.
    """
    sentences = len(before.rows)
    if sentences != len(after.rows):
        raise ValueError(f"scores of {sentences} and {len(after.rows)} sentences cannot be compared pair by pair")
    low = high = math.nan
    if sentences > 1:
        times = np.random.default_rng(seed).multinomial(sentences, np.full(sentences, 1 / sentences), size=_SAMPLES)
        with np.errstate(invalid="ignore"):
            changes = after.corpus(times @ after.rows) - before.corpus(times @ before.rows)
            low, high = np.quantile(changes, [0.025, 0.975]).tolist()
    return {"change": after.score - before.score, "interval": (low, high)}


@torch.no_grad()
def sum_nll(model: nn.Module, batches: Iterable[Batch]) -> Sums:
    """-log P(target | source) and the target tokens of every row of `batches`, from which perplexity is worked out.

    Args:
        model: in evaluation mode; called with source (B, S), its mask and target_in (B, T), gives logits (B, T, V).
        batches: where the model is; they hold each row once, numbered from 0, in any order.
    """
    found: dict[int, tuple[float, int]] = {}
    for batch in batches:
        logits = model(batch.source, batch.source_mask, batch.target_in).float()
        losses = F.cross_entropy(logits.transpose(1, 2), batch.target_out, ignore_index=PAD, reduction="none")
        nats = losses.sum(dim=1, dtype=torch.float64).tolist()
        tokens = (batch.target_out != PAD).sum(dim=1).tolist()
        found.update(zip(batch.rows.tolist(), zip(nats, tokens, strict=True), strict=True))
    return Sums(np.array([found[row] for row in range(len(found))]), perplexity)


def perplexity(sums: np.ndarray) -> np.ndarray:
    """Per subword, of nats and tokens (..., 2)."""
    with np.errstate(over="ignore"):
        perplexities: np.ndarray = np.exp(sums[..., 0] / sums[..., 1])
    return perplexities


def sum_bleu(lines: Sequence[str], references: Sequence[str]) -> Sums:
    """What translations have in common with the references, as `etude.tasks.bleu_sums` counts it."""
    return Sums(bleu_sums.sums([lines], references)[0], bleu_sums.corpus_bleu)


def sum_brackets(trees: Sequence[str], references: Sequence[str]) -> Sums:
    """How many brackets the lines of trees have, how many their references, and how many match (see `bracket_f1`)."""
    counts = [count_brackets(*pair)[::-1] for pair in zip(trees, references, strict=True)]
    return Sums(np.array(counts, dtype=np.float64), bracket_f1)


def bracket_f1(sums: np.ndarray) -> np.ndarray:
    """0 to 100, of brackets in trees, in references and matched (..., 3); 0 where there are none."""
    scores: np.ndarray = 200 * sums[..., 2] / np.maximum(sums[..., 0] + sums[..., 1], 1)
    return scores


def length_ratio(translations: Sums) -> float:
    """Words for each word of the references, as BLEU counts words; of trees brackets."""
    words, of_references = translations.rows.sum(axis=0)[:2]
    return float(words / of_references)
