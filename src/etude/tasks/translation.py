"""Translation of source lines to target lines by an encoder-decoder model."""

from torch import nn

from etude.config import parts
from etude.data.batching import Examples
from etude.data.splits import TokenSplit
from etude.data.store import TokenStore
from etude.tasks import build
from etude.tasks.task import Config, Task


class Translation(Task):
    """Translation of pairs of lines; evaluated by perplexity, and by the metrics of decoded translations."""

    verbs = ("translate", "analyze")
    methods = ("forward", "start", "step")

    def examples(self, split: TokenSplit) -> Examples:
        """Return the pairs of the split."""
        return split

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """Return one column per token."""
        return source, target

    def answer(self, config: Config, model: nn.Module, store: TokenStore, split: str) -> dict[str, list[str]]:
        """Translate the first `budget.bleu_sentences` sources."""
        sources, references = build.text_to_translate(config, store, split)
        translator = build.translator(config, model, store.tokenizer, parts.make(config["decoding"]))  # type: ignore[arg-type]
        return {"sources": sources, "references": references, "hypotheses": translator.translate(sources)}
