"""Translation: a source line to a target line, by a model that encodes the one and decodes the other."""

from torch import nn

from etude.config import parts
from etude.data.batching import Examples
from etude.data.splits import TokenSplit
from etude.data.store import TokenStore
from etude.tasks import build
from etude.tasks.task import Config, Task


class Translation(Task):
    """Pairs of lines as they are; measured by perplexity, and by the metrics of what a search finds."""

    verbs = ("translate", "analyze", "export")
    methods = ("forward", "start", "step")

    def examples(self, split: TokenSplit) -> Examples:
        """The pairs."""
        return split

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """A column a token."""
        return source, target

    def answer(self, config: Config, model: nn.Module, store: TokenStore, split: str) -> dict[str, list[str]]:
        """Translations of the first `budget.bleu_sentences`."""
        sources, references = build.text_to_translate(config, store, split)
        translator = build.translator(config, model, store.tokenizer, parts.make(config["decoding"]))  # type: ignore[arg-type]
        return {"sources": sources, "references": references, "hypotheses": translator.translate(sources)}
