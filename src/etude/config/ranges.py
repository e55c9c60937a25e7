"""Check that the numbers of a config are in range."""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf, isfinite
from operator import le
from typing import Any

from etude.errors import UserError
from etude.study.study import value_at

Config = Mapping[str, Any]

_AT_LEAST = {
    0: """
        seed averaging.checkpoints budget.length_noise decoding.alpha decoding.max_len_offset model.attention.window
        trainer.fast_dev_run data.silver
    """,
    1: """
        averaging.every budget.max_steps budget.warmup_steps budget.source_tokens budget.target_tokens
        budget.max_tokens budget.val_every budget.bleu_sentences budget.pairs budget.test_pairs data.train_pairs
        data.valid_pairs data.test_pairs data.holdout data.max_words data.max_ratio decoding.beam
        decoding.batch_tokens model.vocabulary model.n_layers model.d_model model.d_ff model.heads model.d_k
        model.d_v model.encoder.n_layers model.decoder.n_layers model.encoder.kernel model.decoder.kernel
        model.attention.kv_heads model.position.base model.position.clip model.attention.d_model
        model.attention.heads model.attention.d_k model.attention.d_v model.scale.d_k model.position.d_model
        model.norm.d_model model.feedforward.d_model model.feedforward.d_ff model.tying.d_model
        model.encoder.d_model model.decoder.d_model model.decoder.alignment.d_model schedule.d_model
        trainer.devices trainer.micro_batches trainer.num_nodes trainer.limit_train_batches
    """,
    2: "model.scale.length tokenizer.input_sentence_size",
    4: "model.position.buckets",
    5: "tokenizer.vocab_size",  # four are special tokens
}
_ABOVE_ZERO = """
    budget.lr_factor budget.steps model.init.std model.norm.eps optimizer.eps scale.width scale.depth scale.head_count
    schedule.factor schedule.peak trainer.gradient_clip_val
"""
_SHARES = """
    model.dropout model.attention_dropout loss.smoothing budget.cooldown optimizer.beta1 optimizer.beta2
    data.silver_errors
"""
WIDEST_BEAM = 10_000  # whose scores of a few thousand subwords still fit into memory
_LARGEST_SEED = 2**32 - 1  # the largest that every random number generator accepts
_COVERAGE = "tokenizer.character_coverage"


def check_ranges(config: Config) -> None:
    """Check the range of every number that has one.

    Raises:
        UserError: the first number that is out of its range.
    """
    _require(config, _ABOVE_ZERO, lambda value: 0 < value < inf, "be above 0 and finite")
    for least, keys in _AT_LEAST.items():
        _require(config, keys, partial(le, least), f"be at least {least}")
        _require(config, keys, isfinite, "be finite")
    _require(config, "decoding.beam", lambda beam: beam <= WIDEST_BEAM, f"be at most {WIDEST_BEAM:,}")
    _require(config, "seed", lambda seed: seed <= _LARGEST_SEED, f"be at most {_LARGEST_SEED}")
    _require(config, _SHARES, lambda value: 0 <= value < 1, "lie in [0, 1)")
    _require(config, _COVERAGE, lambda value: 0.98 <= value <= 1, "lie in [0.98, 1], as SentencePiece has it")


def _require(config: Config, keys: str, holds: Callable[[float], bool], requirement: str) -> None:
    """Check that the numbers under some keys are in range; other types are skipped, as a class may use them freely."""
    for key in keys.split():
        value = value_at(config, key)
        if isinstance(value, int | float) and not holds(value):
            raise UserError(f"{key} must {requirement}, not {value}")
