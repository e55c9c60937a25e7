"""Load the model that a run trained, without importing Lightning, which takes seconds."""

import logging
import shlex
from typing import Any

import torch

from etude.config.quoting import quote
from etude.data.store import TokenStore
from etude.data.tokenizer import Tokenizer
from etude.data.vocabularies import open_tokenizer
from etude.errors import UserError
from etude.files import read_json
from etude.model.encoder_decoder import EncoderDecoder
from etude.processor.allocator import keep_large_blocks
from etude.processor.matmul import DEFAULT, choose_matmul
from etude.store.divergence import divergence
from etude.store.provenance import notes_on_code
from etude.store.run_dir import RunDir
from etude.store.tested_weights import check_tested
from etude.tasks import build
from etude.trained.weights import final_weights, load_weights

Config = dict[str, Any]

log = logging.getLogger(__name__)


def load_trained(run: RunDir, tested: str | None = None) -> tuple[Config, EncoderDecoder, Tokenizer]:
    """Load the config of a run, its model with the final weights in evaluation mode, and its tokenizer.

    From then on this process multiplies matrices as the training did (`etude.processor.matmul`).

    Args:
        run: the run.
        tested: which weights to load, as the key `weights` of the config; None: those that the run tests.

    Raises:
        UserError: the directory holds no run, its checkpoint was deleted or is damaged, it has no such weights, or it
            diverged before its first checkpoint.
    """
    if not run.config_file.is_file():
        raise run.not_a_run
    config = run.config() | ({"weights": tested} if tested else {})
    check_tested(config)
    if not run.checkpoint.is_file():
        raise no_weights(run)
    weights = final_weights(run, config)
    tokenizer = open_tokenizer(run.tokenizer_file)
    with torch.random.fork_rng(devices=[]):  # what is drawn here is overwritten, and is no business of the caller's
        transformer = build.model(config, len(tokenizer))
    trained_with = (read_json(run.environment_file) or {}).get("matmul")
    choose_matmul(DEFAULT, transformer, trained_with, accelerator="auto")
    keep_large_blocks()
    load_weights(transformer, weights)
    for note in notes_on_code([run.result()] if run.finished else []):
        log.warning("%s: %s", run.path, note)  # its weights were made by other code than computes with them here
    return config, transformer.eval(), tokenizer


def no_weights(run: RunDir) -> UserError:
    """Return the error for a run whose training has no checkpoint."""
    if not run.finished:
        return UserError(f"{run.path} has no checkpoint yet: train the run first, or name the directory of another")
    result = run.result()
    if (how := divergence(result)) and not result.get("weights"):
        return UserError(f"{run.path} diverged before its first checkpoint ({how}): there are no weights")
    words = [word for word in run.overrides() if not word.startswith(("runs_dir=", "init_from"))]
    if parent := run.config().get("init_from"):  # by its path, as a name would be looked for in the other folder
        words.append(f"init_from={{run:{quote(parent['run'])},vocabulary:{parent['vocabulary']}}}")
    typed = shlex.join(words)
    again = " ".join(filter(None, ["etude train", typed, "runs_dir=again"]))
    return UserError(f"the weights of {run.path} were deleted: `{again}` trains them once more")


def require_same_subwords(run: RunDir, store: TokenStore, tokenizer: Tokenizer) -> None:
    """Check that prepared text has the subwords that a run was trained with.

    Raises:
        UserError: it has others.
    """
    if store.tokenizer.model_file.read_bytes() != tokenizer.model_file.read_bytes():
        raise UserError(f"the text has changed since {run.path} was trained: its subwords are no longer the same")
