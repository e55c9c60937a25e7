"""`etude evaluate`: score a trained run on its validation or test set, with its own decoding or another."""

import logging
from collections.abc import Iterable
from typing import Any

from etude.data.store import TokenStore
from etude.errors import UserError
from etude.logs import logging_to
from etude.store.run_dir import RunDir
from etude.study.arms import override_key
from etude.tasks import build
from etude.tasks.metrics import format_scores, score_translations
from etude.trained.load import require_same_subwords
from etude.trained.run import load

log = logging.getLogger(__name__)


def evaluate(config: dict[str, Any], typed: Iterable[str] = ()) -> str:
    """Evaluate a run on one split; returns perplexity per subword and every metric, formatted for the terminal.

    Args:
        config: the config of `etude evaluate`.
        typed: its overrides. Values of decoding and metrics that they do not set are those of the run.

    Raises:
        UserError: there is no such run, its checkpoint is missing or damaged, or its text has changed.
    """
    logging_to(None)
    opened = load(config["run"], device=config["device"], weights=config["weights"])
    run, trained, transformer = opened.run_dir, opened.config, opened.model
    search = build.decoding_config(trained, config, typed)
    store, split = _token_store(run, trained), config["split"]
    require_same_subwords(run, store, opened.tokenizer)
    if run.text() not in ("", store.fingerprint):
        log.warning("%s: its text has changed since it was trained: these are scores on the text of today", run.path)
    task = build.task(trained)
    with build.autocast(trained, transformer):
        scores = task.measure(transformer, build.evaluation_batches(trained, store.split(split)), store, split)
        text = task.answer(trained | {"decoding": search}, transformer, store, split)
    overridden = {override_key(override).partition(".")[0] for override in typed}
    metrics = config["metrics"] if "metrics" in overridden else trained.get("metrics", config["metrics"])
    if text:
        scores |= score_translations(metrics, trained["data"], text["hypotheses"], text["references"], text["sources"])
    return format_scores(split, scores, sentences=len(text.get("references", [])))


def _token_store(run: RunDir, trained: dict[str, Any]) -> TokenStore:
    """Find the prepared text of a run, or prepare it again.

    Raises:
        UserError: it cannot be read.
    """
    try:
        return build.token_store(trained)
    except UserError as error:
        raise UserError(f"the text of {run.path}, whose relative paths start from this folder: {error}") from error
