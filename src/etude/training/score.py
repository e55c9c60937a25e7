"""Evaluate a trained model on the validation and test sets."""

import logging
import time
from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any

from torch import nn

from etude.data.store import TokenStore
from etude.decoding.beam import NoNumbers
from etude.files import write_text
from etude.store.divergence import divergence
from etude.store.metrics_file import read_metrics
from etude.store.run_dir import RunDir
from etude.store.tested_weights import note_on_tested
from etude.tasks import build
from etude.tasks.metrics import score_translations

log = logging.getLogger(__name__)


def validate_translations(config: Mapping[str, Any], model: nn.Module, store: TokenStore) -> dict[str, Any]:
    """Generate the text of the first `budget.val_sentences` validation lines, and score it by `budget.val_metrics`.

    Returns:
        Scores and signatures by name, NaN for a metric that fails or a model that yields NaN; empty without metrics.
    """
    budget = config["budget"]
    if not (names := budget.get("val_metrics")):
        return {}
    first = {**config, "budget": budget | {"bleu_sentences": budget.get("val_sentences")}}
    scores: dict[str, Any] = dict.fromkeys(names, nan)
    try:
        with build.autocast(first, model):
            text = build.task(first).answer(first, model, store, "valid")
    except NoNumbers:
        return scores
    metrics = {name: config["metrics"][name] for name in names}
    return scores | score_translations(metrics, config["data"], text["hypotheses"], text["references"], text["sources"])


def score_early(metrics_file: Path, max_steps: int) -> dict[str, float]:
    """Return the last validation perplexity within the first eighth of a training, and its step (Narang et al. 2021).

    Returns:
        {"perplexity", "step"}; empty if there was no validation as early as that.
    """
    for row in reversed(read_metrics(metrics_file)):
        if (perplexity := row.get("valid_perplexity")) and 8 * int(row["step"]) <= max_steps:
            return {"perplexity": float(perplexity), "step": int(row["step"])}
    return {}


def evaluate(run: RunDir, config: dict[str, Any], model: nn.Module, store: TokenStore) -> dict[str, Any]:
    """Compute what the task measures on the validation and test sets, and the metrics of the test set.

    Generated text is written into the run's directory. If the task generates none, `sentences` counts the rows that
    were scored. A model that yields NaN when it translates has diverged; its metrics are NaN.
    """
    if note := note_on_tested(config):
        log.info(note)
    task, found = build.task(config), dict[str, Any]()
    with build.autocast(config, model):
        for name in ("valid", "test"):
            batches = build.evaluation_batches(config, store.split(name))
            batches = batches[: int(config["trainer"]["fast_dev_run"]) or None]
            found[name] = task.measure(model, batches, store, name)
            rows = sum(len(batch.rows) for batch in batches)
        started = time.perf_counter()
        try:
            text = task.answer(config, model, store, "test")
        except NoNumbers as error:
            text, found["diverged"] = {}, divergence(found) or str(error)
            found["test"] |= dict.fromkeys(config["metrics"], nan)
        found["valid"] |= validate_translations(config, model, store)
    decoding_seconds = time.perf_counter() - started
    for file, lines in text.items():
        write_text(run.path / f"{file}.test.txt", "".join(f"{line}\n" for line in lines))
    if text:
        rows = len(text["references"])
        found["test"] |= score_translations(
            config["metrics"], config["data"], text["hypotheses"], text["references"], text["sources"]
        )
    found["test"] |= {"sentences": rows, "pairs": len(store.split("test"))}
    return {**found, "decoding_seconds": round(decoding_seconds, 2)}
