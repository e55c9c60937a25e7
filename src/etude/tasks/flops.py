"""Floating-point operations by formula: two for each multiplication and addition in a matrix product, no others.

A matrix of n entries costs 2 n for each position that it multiplies; attention costs 2 (K + V) for each pair of a query
and a key, in each head. Masked pairs are computed too. A backward pass takes twice the products of a forward pass.
"""

from etude.model.position import Position
from etude.tasks.size import Config, Size, measure_size
from etude.tasks.text_size import batch_size, measure_text, with_vocabulary


def flops_to_train(config: Config) -> float:
    """Count the floating-point operations of all training steps of a run."""
    text = measure_text(config)
    sentences, source, target = batch_size(config, text)
    step = float(sentences * training_flops(measure_size(with_vocabulary(config, text)), source, target))
    return step * config["budget"]["max_steps"]


def training_flops(size: Size, source: int, target: int) -> int:
    """One optimizer step on one sentence.

    Args:
        size: of the model.
        source: S, pieces of the source.
        target: T, pieces of the target.
    """
    once = _encoding(size, source) + 2 * target * size.target_weights
    pairs = _pairs(size, target, target) + _pairs(size, target, source)
    return 3 * (once + pairs + _scores(size, size.target_position, target, target))


def decoding_flops(size: Size, source: int, target: int, beam: int) -> int:
    """Translating one sentence with caches: the first step has one hypothesis, each later one `beam` of them.

    Args:
        size: of the model.
        source: S, pieces of the source.
        target: T, pieces of the translation.
        beam: hypotheses kept.
    """
    total = _encoding(size, source)
    for step in range(1, target + 1):
        own = _pairs(size, 1, step) + _scores(size, size.target_position, 1, step)
        one = 2 * size.target_weights + own + _pairs(size, 1, source)
        total += one if step == 1 else beam * one
    return total


def _encoding(size: Size, source: int) -> int:
    """The encoder, and the keys and values that the decoder reads from its output."""
    matrices = 2 * source * size.source_weights
    return matrices + _pairs(size, source, source) + _scores(size, size.source_position, source, source)


def _pairs(size: Size, queries: int, keys: int) -> int:
    return 2 * size.layers * size.heads * (size.d_k + size.d_v) * queries * keys


def _scores(size: Size, position: Position, queries: int, keys: int) -> int:
    return size.layers * size.heads * position.score_flops(queries, keys, size.d_k)
