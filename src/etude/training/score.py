"""What a trained model is worth: perplexities, metrics, and the translations beside the run."""

import time
from typing import Any

from etude.config import parts
from etude.data.store import TokenStore
from etude.files import write_text
from etude.model.encoder_decoder import EncoderDecoder
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.tasks.metrics import score_translations
from etude.tasks.perplexity import negative_log_likelihood, perplexity


def evaluate(run: RunDir, config: dict[str, Any], transformer: EncoderDecoder, store: TokenStore) -> dict[str, Any]:
    """Perplexity of the validation and test sets, the metrics of the test set; the hypotheses go to their file."""
    likelihoods = {}
    for name in ("valid", "test"):
        batches = build.evaluation_batches(config, store.split(name))[: int(config["trainer"]["fast_dev_run"]) or None]
        nats, tokens = negative_log_likelihood(transformer, batches)
        likelihoods[name] = {"perplexity": perplexity(nats, tokens), "tokens": tokens}
    started = time.perf_counter()
    sources, references = build.text_to_translate(config, store, "test")
    translate = build.translator(config, transformer, store.tokenizer, parts.make(config["decoding"])).translate
    hypotheses = translate(sources)
    decoding_seconds = time.perf_counter() - started
    for file, lines in (
        (run.sources_file("test"), sources),
        (run.references_file("test"), references),
        (run.hypotheses_file("test"), hypotheses),
    ):
        write_text(file, "".join(f"{line}\n" for line in lines))
    return {
        "valid": likelihoods["valid"],
        "test": {
            **likelihoods["test"],
            **score_translations(config["metrics"], config["data"], hypotheses, references),
            "sentences": len(references),
            "pairs": len(store.split("test")),
        },
        "decoding_seconds": round(decoding_seconds, 2),
    }
