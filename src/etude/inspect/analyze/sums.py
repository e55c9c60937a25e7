"""Corpus scores as sums over sentences, so that two conditions can be compared by a paired bootstrap."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from etude.data.batching import Batch
from etude.data.tokenizer import PAD
from etude.tasks import bleu_sums
from etude.tasks.bracket_f1 import count_brackets
from etude.tasks.perplexity import row_nats

_SAMPLES = 1000


@dataclass(frozen=True)
class Sums:
    """A corpus score that is computed from sums over n sentences.

    Attributes:
        rows: (n, k), the statistics of each sentence.
        corpus: maps sums (..., k) to scores (...).
    """

    rows: np.ndarray
    corpus: Callable[[np.ndarray], np.ndarray]

    @property
    def score(self) -> float:
        """The score of all sentences."""
        return float(self.corpus(self.rows.sum(axis=0)))

    def among(self, sentences: np.ndarray) -> "Sums":
        """Restrict to some sentences, given by row numbers."""
        return replace(self, rows=self.rows[sentences])


def change(before: Sums, after: Sums, seed: int) -> dict[str, Any]:
    """Compute the "change" of the score, and its 95 % "interval" over sentences.

    The interval comes from a paired bootstrap (Koehn 2004): sentences are drawn with replacement, the same for both. It
    does not cover the variation between training seeds. With a single sentence it is NaN.

    Raises:
        ValueError: the two have different numbers of sentences.
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
    """Compute -log P(target | source) and the number of target tokens for every row of `batches`.

    Args:
        model: in evaluation mode; maps source (B, S), its mask and target_in (B, T) to logits (B, T, V).
        batches: on the model's device; they hold each row once, numbered from 0, in any order.

    Returns:
        Sums whose score is the perplexity per token.
    """
    found: dict[int, tuple[float, int]] = {}
    for batch in batches:
        nats = row_nats(model, batch).tolist()
        tokens = (batch.target_out != PAD).sum(dim=1).tolist()
        found.update(zip(batch.rows.tolist(), zip(nats, tokens, strict=True), strict=True))
    return Sums(np.array([found[row] for row in range(len(found))]), perplexity)


def perplexity(sums: np.ndarray) -> np.ndarray:
    """Compute the perplexity per token from sums of nats and of tokens (..., 2)."""
    with np.errstate(over="ignore"):
        perplexities: np.ndarray = np.exp(sums[..., 0] / sums[..., 1])
    return perplexities


def sum_bleu(lines: Sequence[str], references: Sequence[str], **options: Any) -> Sums:
    """Compute the BLEU statistics of translations; `options` are those of `etude.tasks.bleu_sums.sums`."""
    return Sums(bleu_sums.sums([lines], references, **options)[0], bleu_sums.corpus_bleu)


def sum_brackets(trees: Sequence[str], references: Sequence[str]) -> Sums:
    """Count the brackets of each tree, of its reference, and those that match (see `bracket_f1`)."""
    counts = [count_brackets(*pair)[::-1] for pair in zip(trees, references, strict=True)]
    return Sums(np.array(counts, dtype=np.float64), bracket_f1)


def bracket_f1(sums: np.ndarray) -> np.ndarray:
    """Compute bracket F1, 0 to 100, from sums of brackets in trees, in references and matched (..., 3); 0 if none."""
    scores: np.ndarray = 200 * sums[..., 2] / np.maximum(sums[..., 0] + sums[..., 1], 1)
    return scores


def length_ratio(translations: Sums) -> float:
    """Return the words of the translations per word of the references, as BLEU counts words; for trees, brackets."""
    words, of_references = translations.rows.sum(axis=0)[:2]
    return float(words / of_references)
