"""`etude evaluate`: a trained run on its validation or test set, with its own decoding or any other."""

import logging
from collections.abc import Iterable
from typing import Any

from etude.config import parts
from etude.errors import UserError
from etude.logs import logging_to
from etude.runs.divergence import divergence
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.tasks.bleu import bleu
from etude.tasks.paper_bleu import paper_bleu
from etude.tasks.perplexity import negative_log_likelihood, perplexity
from etude.training.build import load_trained
from etude.training.checkpoints import read_checkpoint

log = logging.getLogger(__name__)


def evaluate(config: dict[str, Any], typed: Iterable[str] = ()) -> str:
    """Perplexity per word piece, sacreBLEU and the paper's own BLEU of one split, for the terminal.

    Args:
        config: of the verb.
        typed: its overrides: what they do not say of the decoding is as in the run.

    Raises:
        UserError: there is no such run, or its checkpoint is missing or torn.
    """
    logging_to(None)
    run = RunDir.at(config["run"])
    trained, transformer, tokenizer = load_trained(run)
    search = build.search(trained, config, typed)
    if run.finished and (why := divergence(run.result())):
        log.warning("%s diverged, for %s: this is what its last checkpoint holds", run.path, why)
    elif not run.finished:
        step, steps = read_checkpoint(run.checkpoint)["global_step"], trained["budget"]["max_steps"]
        log.warning("%s is not finished: this is what it has learned by step %d of %d", run.path, step, steps)
    transformer.to(build.device(config["device"]))
    store, split = build.token_store(trained), config["split"]
    if store.tokenizer.model_file.read_bytes() != tokenizer.model_file.read_bytes():
        raise UserError(
            f"the text has changed since {config['run']} was trained: its word pieces are no longer the same"
        )
    batches = build.evaluation_batches(trained, store.split(split))
    nats, tokens = negative_log_likelihood(transformer, batches)
    sources, references = build.text_to_translate(trained, store, split)
    hypotheses = build.translator(trained, transformer, tokenizer, search).translate(sources)
    score = bleu(hypotheses, references)
    paper = paper_bleu(hypotheses, references, parts.make(trained["data"]).languages[1])
    return (
        f"{split} perplexity {perplexity(nats, tokens):.2f}  BLEU {score.score:.2f}  "
        f"({score.signature}, {score.sentences:,} sentences)\n"
        f"{split} BLEU by the paper's recipe {paper.score:.2f}  ({paper.signature})\n"
    )
