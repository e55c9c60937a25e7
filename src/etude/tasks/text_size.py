"""How long the sentences of a config's text are, and how many of them one batch holds; known before any run."""

from dataclasses import dataclass
from typing import Any

from etude.config.identity import fingerprint, training_fingerprint
from etude.errors import UserError
from etude.tasks import build
from etude.tasks.size import measure_size

Config = dict[str, Any]

_COUNTED = 1_000_000  # pairs at most of which batches are counted: of more it takes seconds
ASSUMED = 25.0  # tokens of a sentence, the end token counted, where no prepared text says better


@dataclass(frozen=True)
class TextSize:
    """What is known of the text before any run.

    Attributes:
        fingerprint: None where the text is not there.
        training: that of the text to train on alone; likewise.
        source: mean columns of a source in a batch: of translation its tokens, the end token counted.
        target: mean columns of a target, likewise.
        sentences: to translate at the end; None where they have not been counted.
        vocabulary: V, the subwords that there are; None where they have not been learned.
        tokens: of all targets to train on, their end tokens counted; None where nobody knows.
        batches: that hold each sentence to train on once; None where they have not been counted.
        prepared: whether the figures were counted; else they are assumed.
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


def measure_text(config: Config) -> TextSize:
    """Count the prepared text of a config, or assume `ASSUMED` tokens where it is not prepared."""
    columns = build.task(config).columns
    assumed = columns(ASSUMED, ASSUMED)
    try:
        store, known = build.prepared_store(config), (fingerprint(config), training_fingerprint(config))
    except UserError:
        return TextSize(None, None, *assumed, None, None, None, None, prepared=False)
    if store is None:
        pairs, sentences = (config["data"].get(f"{split}_pairs") for split in ("train", "test"))
        tokens = pairs and assumed[1] * pairs
        return TextSize(*known, *assumed, _translated(sentences, config), None, tokens, None, prepared=False)
    train, pairs = store.meta["splits"]["train"], store.meta["splits"]["train"]["pairs"]
    source, target = columns(*(train[f"{side}_tokens"] / pairs for side in ("source", "target")))
    sentences = _translated(store.meta["splits"]["test"]["pairs"], config)
    batches = build.batches_per_epoch(config, store.split("train")) if pairs <= _COUNTED else None
    return TextSize(*known, source, target, sentences, store.vocab_size, target * pairs, batches, prepared=True)


def _translated(sentences: int | None, config: Config) -> int | None:
    """How many sentences of a test set are translated."""
    if "translate" not in build.task(config).verbs:
        return 0
    first = config["budget"]["bleu_sentences"]
    return sentences if sentences is None or first is None else min(sentences, first)


def with_vocabulary(config: Config, text: TextSize) -> Config:
    """The config with as many subwords as the text turned out to have."""
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
    """Sentences of a batch, tokens of each source, tokens of each target: as many as the budget of tokens holds."""
    budget = config["budget"]
    sentences = min(budget["source_tokens"] / text.source, budget["target_tokens"] / text.target)
    return max(1, round(sentences)), round(text.source), round(text.target)
