"""What is analysed: a trained run, and a text to try it on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from etude.config import parts
from etude.data.batching import Batch
from etude.data.splits import Limits, TokenSplit, read_text, write_split
from etude.data.tokenizer import Tokenizer
from etude.decoding.beam import BeamSearch
from etude.errors import UserError
from etude.inspect.analyze.sums import Sums, sum_bleu, sum_brackets, sum_nll
from etude.model.encoder_decoder import EncoderDecoder
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.trained.load import load_trained

Pair = tuple[str, str]

_SUMS = {"bleu": sum_bleu, "bracket_f1": sum_brackets}


@dataclass(frozen=True)
class Text:
    """Some pairs, as lines and as tokens.

    Attributes:
        sources, references: n lines each.
        source_lengths, target_lengths: tokens in each, EOS not counted, (n,).
        batches: all of them, each row once, where the model is.
    """

    sources: list[str]
    references: list[str]
    source_lengths: np.ndarray
    target_lengths: np.ndarray
    batches: list[Batch]


@dataclass(frozen=True)
class Subject:
    """A trained run.

    Attributes:
        run, config: where it lies, and what it was.
        model: in evaluation mode, where it shall compute.
        tokenizer: its subwords.
    """

    run: RunDir
    config: dict[str, Any]
    model: EncoderDecoder
    tokenizer: Tokenizer

    @classmethod
    def of(cls, run: RunDir, device: str) -> "Subject":
        """The run with its weights.

        Raises:
            UserError: there is no such run, it is not finished, or its checkpoint is missing or torn.
        """
        if run.config_file.is_file() and not run.finished:
            raise UserError(f"{run.path} is not finished: let its training end first, the same command goes on with it")
        config, model, tokenizer = load_trained(run)
        build.task(config, "analyze")
        return cls(run, config, model.to(build.device(device)), tokenizer)

    @property
    def metric(self) -> str:
        """What its translations are scored by: "bracket_f1" if they are trees, else "bleu"; empty if it writes none."""
        if "translate" not in build.task(self.config).verbs:
            return ""
        targets = [str(part["_target_"]).rpartition(".")[2] for part in (self.config.get("metrics") or {}).values()]
        return "bracket_f1" if "bracket_f1" in targets else "bleu"

    @property
    def longest_line(self) -> int:
        """Pieces of the longest line that fits both the run's limit and its batches."""
        budget = self.config["budget"]
        return min(budget["max_tokens"], budget["source_tokens"] - 1, budget["target_tokens"] - 1)

    def text(self, pairs: Sequence[Pair]) -> Text:
        """Some pairs as the run's own evaluation would read them: blank ones are left out, long ones cut.

        Raises:
            UserError: no pair is usable.
        """
        with TemporaryDirectory() as name:
            folder = Path(name)
            write_split(folder, "test", pairs, self.tokenizer, Limits(max_tokens=self.config["budget"]["max_tokens"]))
            split, lines = TokenSplit(folder, "test", len(self.tokenizer)), read_text(folder, "test")
            batches = build.evaluation_batches(self.config, split)
        device = next(self.model.parameters()).device
        lengths = (split.source_lengths - 1, split.target_lengths - 1)
        return Text(*lines, *lengths, [batch.to(device) for batch in batches])

    def likelihoods(self, text: Text, changed: Callable[[Batch], Batch] = lambda batch: batch) -> Sums:
        """Of every reference, given its source; `changed` says what the model is shown of a batch instead."""
        with build.autocast(self.config, self.model):
            return sum_nll(self.model, map(changed, text.batches))

    def translations(self, text: Text, **decoding: Any) -> Sums:
        """Of every source, by the run's own search but for what `decoding` says."""
        search: BeamSearch = parts.make(self.config["decoding"] | decoding)
        translator = build.translator(self.config, self.model, self.tokenizer, search)
        with build.autocast(self.config, self.model):
            translations = translator.translate(text.sources)
        return _SUMS[self.metric](translations, text.references)


def sample_text(subject: Subject, sentences: int, seed: int) -> Text:
    """Some pairs of the run's test set, drawn by the seed, in their order: all runs on one test set get the same.

    Raises:
        UserError: the run left no text and its data cannot be had, or is no longer the same.
    """
    pairs = _test_pairs(subject)
    rows = np.random.default_rng(seed).permutation(len(pairs))[:sentences]
    return subject.text([pairs[row] for row in sorted(rows)])


def longest_training_sentence(subject: Subject) -> int | None:
    """Pieces in the longest source line that the run was trained on; None where the text is not prepared here."""
    try:
        store = build.prepared_store(subject.config)
    except UserError:
        return None
    return None if store is None else int(store.split("train").source_lengths.max()) - 1


def _test_pairs(subject: Subject) -> list[Pair]:
    """What the run was tested on: from its directory, or where an older run lacks it, from the data."""
    files = subject.run.sources_file("test"), subject.run.references_file("test")
    if all(file.is_file() for file in files):
        sources, references = (file.read_text(encoding="utf-8").split("\n")[:-1] for file in files)
        return list(zip(sources, references, strict=True))
    store = build.token_store(subject.config)
    if store.tokenizer.model_file.read_bytes() != subject.tokenizer.model_file.read_bytes():
        raise UserError(
            f"the text has changed since {subject.run.path} was trained: its subwords are no longer the same"
        )
    return list(zip(*store.text("test"), strict=True))
