"""The lengths of the sentences of a config's text, and how many sentences a batch holds, before any training."""

from dataclasses import dataclass
from typing import Any

from etude.config.freeze import Fingerprints, fingerprints
from etude.data.store import TokenStore
from etude.errors import UserError
from etude.tasks import build
from etude.tasks.size import measure_size

Config = dict[str, Any]

_MAX_PAIRS_TO_BATCH = 1_000_000  # for more pairs, counting the batches takes seconds, and is skipped
ASSUMED = 25.0  # tokens per sentence, the end token counted, if the text is not prepared


@dataclass(frozen=True)
class TextSize:
    """What is known of the text before training.

    Attributes:
        fingerprint: the fingerprint of the text; None if the text is not there.
        training: the fingerprint of the training text only; None if the text is not there.
        source: mean columns of a source in a batch; in translation its tokens, the end token counted.
        target: mean columns of a target, likewise.
        sentences: number of sentences to translate after training; None if not known.
        vocabulary: V, the number of subwords; None if they have not been learned.
        tokens: target tokens of the training text that count in the loss, end tokens too; None if not known.
        batches: training batches per epoch; None if they have not been counted.
        prepared: whether the figures were counted in prepared text; else they are assumed.
        missing: why the text is not there; empty if it is.
        validated: number of sentences to translate at each validation; None if not known.
    """

    fingerprint: str | None
    training: str | None
    source: float
    target: float
    sentences: int | None
    vocabulary: int | None
    tokens: float | None
    batches: int | None
    prepared: bool
    missing: str = ""
    validated: int | None = 0


def measure_text(config: Config) -> TextSize:
    """Count the prepared text of a config, or assume `ASSUMED` tokens where it is not prepared."""
    columns, tokens = build.task(config).columns, build.context(config) if build.is_running(config) else ASSUMED
    assumed = columns(tokens, tokens)
    try:
        known, store = fingerprints(config), build.prepared_store(config)  # the first has a sentence for all that fails
    except UserError as error:
        return TextSize(None, None, *assumed, None, None, None, None, prepared=False, missing=str(error))
    if store is None:
        pairs, valid, sentences = (config["data"].get(f"{split}_pairs") for split in ("train", "valid", "test"))
        tokens = pairs and build.task(config).counted(assumed[1]) * pairs
        count, validated = _count_to_translate(sentences, config), _count_to_validate(valid, config)
        return TextSize(*known, *assumed, count, None, tokens, None, prepared=False, validated=validated)
    if store.is_running:
        return _measure_contexts(config, known, store)
    train, pairs = store.meta["splits"]["train"], store.meta["splits"]["train"]["pairs"]
    source, target = columns(*(train[f"{side}_tokens"] / pairs for side in ("source", "target")))
    sentences = _count_to_translate(store.meta["splits"]["test"]["pairs"], config)
    validated = _count_to_validate(store.meta["splits"]["valid"]["pairs"], config)
    batches = build.batches_per_epoch(config, store.split("train")) if pairs <= _MAX_PAIRS_TO_BATCH else None
    tokens = float(build.examples(config, store.split("train")).target_counts.sum())
    known_of = (*known, source, target, sentences, store.vocab_size, tokens, batches)
    return TextSize(*known_of, prepared=True, validated=validated)


def _measure_contexts(config: Config, known: Fingerprints, store: TokenStore) -> TextSize:
    """Count the contexts of prepared running text."""
    rows, split = build.examples(config, store.split("train")), store.split("train")
    source, target = (float(lengths.mean()) for lengths in (rows.source_lengths, rows.target_lengths))
    batches = build.batches_per_epoch(config, split) if len(split) <= _MAX_PAIRS_TO_BATCH else None
    tokens = float(rows.target_counts.sum())
    return TextSize(*known, source, target, 0, store.vocab_size, tokens, batches, prepared=True)


def _count_to_translate(sentences: int | None, config: Config) -> int | None:
    """Return how many of a test set's `sentences` are translated after training."""
    if "translate" not in build.task(config).verbs:
        return 0
    first = config["budget"]["bleu_sentences"]
    return sentences if sentences is None or first is None else min(sentences, first)


def _count_to_validate(sentences: int | None, config: Config) -> int | None:
    """Return how many of a validation set's `sentences` are translated at each validation."""
    budget = config["budget"]
    if not budget.get("val_metrics"):
        return 0
    return _count_to_translate(sentences, config | {"budget": budget | {"bleu_sentences": budget.get("val_sentences")}})


def with_vocabulary(config: Config, text: TextSize) -> Config:
    """Return the config with the actual number of subwords, if it is known."""
    if text.vocabulary is None:
        return config
    return config | {"tokenizer": config["tokenizer"] | {"vocab_size": text.vocabulary}}


def flops_to_train(config: Config) -> float:
    """Count the floating-point operations of all training steps of a run."""
    text = measure_text(config)
    sentences, source, target = batch_size(config, text)
    step = float(sentences * measure_size(with_vocabulary(config, text)).training_flops(source, target))
    return step * config["budget"]["max_steps"]


def batch_size(config: Config, text: TextSize) -> tuple[int, int, int]:
    """Return how many sentences fit a batch, and the source and target columns of each, rounded."""
    budget = config["budget"]
    sentences = min(budget["source_tokens"] / text.source, budget["target_tokens"] / text.target)
    return max(1, round(sentences)), round(text.source), round(text.target)
