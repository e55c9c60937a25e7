"""The trained run that is analysed, and the text that it is analysed on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from etude.config import parts
from etude.data.batching import Batch
from etude.data.splits import TokenSplit, read_text, write_split
from etude.data.tokenizer import Tokenizer
from etude.decoding.beam import BeamSearch
from etude.errors import UserError
from etude.files import read_json
from etude.inspect.analyze.sums import Sums, sum_bleu, sum_brackets, sum_nll
from etude.model.encoder_decoder import EncoderDecoder
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.tasks.bleu import options_of
from etude.trained.load import require_same_subwords
from etude.trained.run import TrainedRun

Pair = tuple[str, str]


@dataclass(frozen=True)
class Text:
    """Sentence pairs, as lines and as batches of tokens.

    Attributes:
        sources, references: n lines each.
        source_lengths, target_lengths: (n,), the tokens in each line, without EOS.
        batches: batches that hold every pair once, on the model's device.
    """

    sources: list[str]
    references: list[str]
    source_lengths: np.ndarray
    target_lengths: np.ndarray
    batches: list[Batch]


@dataclass(frozen=True)
class Subject:
    """A trained run that is analysed.

    Attributes:
        run: the run's directory.
        config: its config.
        model: its model, in evaluation mode, on the device of the analysis.
        tokenizer: its tokenizer.
    """

    run: RunDir
    config: dict[str, Any]
    model: EncoderDecoder
    tokenizer: Tokenizer

    @classmethod
    def of(cls, run: RunDir, device: str) -> "Subject":
        """Load a finished run onto a device.

        Raises:
            UserError: there is no such run, it is not finished, its checkpoint is missing or damaged, or its task
                cannot be analysed.
        """
        if run.config_file.is_file() and not run.finished:
            raise UserError(f"{run.path} is not finished: let its training end first, the same command goes on with it")
        opened = TrainedRun(run, device)
        model, config = opened.model, opened.config
        build.task(config, "analyze")
        if build.is_running(config):
            raise UserError(f"{run.path} was trained on running text, and `etude analyze` looks at lines alone")
        return cls(run, config, model, opened.tokenizer)

    @property
    def metric(self) -> str:
        """The metric of its translations: "bracket_f1" for trees, else "bleu"; empty if its task writes no text."""
        if "translate" not in build.task(self.config).verbs:
            return ""
        targets = [str(part["_target_"]).rpartition(".")[2] for part in (self.config.get("metrics") or {}).values()]
        return "bracket_f1" if "bracket_f1" in targets else "bleu"

    @property
    def longest_line(self) -> int:
        """The most tokens of a line that fits both `budget.max_tokens` and a batch."""
        budget = self.config["budget"]
        return min(budget["max_tokens"], budget["source_tokens"] - 1, budget["target_tokens"] - 1)

    def text(self, pairs: Sequence[Pair]) -> Text:
        """Tokenise and batch pairs as the run's own evaluation does: blank ones are left out, long ones cut.

        Raises:
            UserError: no pair is usable.
        """
        with TemporaryDirectory() as name:
            folder = Path(name)
            write_split(folder, "test", pairs, self.tokenizer, self.config["budget"]["max_tokens"])
            split, lines = TokenSplit(folder, "test", len(self.tokenizer)), read_text(folder, "test")
            batches = build.evaluation_batches(self.config, split)
        device = next(self.model.parameters()).device
        lengths = (split.source_lengths - 1, split.target_lengths - 1)
        return Text(*lines, *lengths, [batch.to(device) for batch in batches])

    def likelihoods(self, text: Text, changed: Callable[[Batch], Batch] = lambda batch: batch) -> Sums:
        """Compute the negative log-likelihood of every reference given its source; `changed` may alter each batch."""
        with build.autocast(self.config, self.model):
            return sum_nll(self.model, map(changed, text.batches))

    def translations(self, text: Text, **decoding: Any) -> Sums:
        """Translate every source and score it; `decoding` overrides options of the run's own search."""
        search: BeamSearch = parts.make(self.config["decoding"] | decoding)
        translator = build.translator(self.config, self.model, self.tokenizer, search)
        with build.autocast(self.config, self.model):
            translations = translator.translate(text.sources)
        if self.metric == "bracket_f1":
            return sum_brackets(translations, text.references)
        scores = (read_json(self.run.result_file) or {}).get("test") or {}
        signature = scores.get("signature") or scores.get("bleu_lowercased_signature")
        return sum_bleu(translations, text.references, **options_of(signature))


def sample_text(subject: Subject, sentences: int, seed: int) -> Text:
    """Draw pairs from the run's test set by a seed, in their original order; all runs on one test set get the same.

    Raises:
        UserError: the run's directory has no test text, and its data is not available or has changed.
    """
    pairs = _test_pairs(subject)
    rows = np.random.default_rng(seed).permutation(len(pairs))[:sentences]
    return subject.text([pairs[row] for row in sorted(rows)])


def longest_training_sentence(subject: Subject) -> int | None:
    """Return the tokens in the longest source line that the run was trained on; None if the text is not prepared."""
    try:
        store = build.prepared_store(subject.config)
    except UserError:
        return None
    return None if store is None else int(store.split("train").source_lengths.max()) - 1


def _test_pairs(subject: Subject) -> list[Pair]:
    """Read the run's test pairs from its directory or, if an older run lacks them, from the prepared data."""
    files = subject.run.sources_file, subject.run.references_file
    if all(file.is_file() for file in files):
        sources, references = (file.read_text(encoding="utf-8").split("\n")[:-1] for file in files)
        return list(zip(sources, references, strict=True))
    store = build.token_store(subject.config)
    require_same_subwords(subject.run, store, subject.tokenizer)
    return list(zip(*store.text("test"), strict=True))
