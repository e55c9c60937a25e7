"""Load the model that a run trained, without importing Lightning, which takes seconds."""

import logging
from typing import Any

from etude.data.store import TokenStore
from etude.data.tokenizer import Tokenizer
from etude.errors import UserError
from etude.files import read_json
from etude.model.encoder_decoder import EncoderDecoder
from etude.processor.allocator import keep_large_blocks
from etude.processor.matmul import DEFAULT, choose_matmul
from etude.runs.divergence import divergence
from etude.runs.provenance import notes_on_code
from etude.runs.run_dir import RunDir
from etude.runs.tested_weights import check_tested
from etude.tasks import build
from etude.trained.weights import final_weights, load_weights

Config = dict[str, Any]

log = logging.getLogger(__name__)


def load_trained(run: RunDir, tested: str | None = None) -> tuple[Config, EncoderDecoder, Tokenizer]:
    """Load the config of a run, its model with the final weights in evaluation mode, and its tokenizer.

    Args:
        run: the run.
        tested: which weights to load, as the key `weights` of the config; None: those that the run tests.

    Raises:
        UserError: the directory holds no run, its checkpoint is missing or damaged, it has no such weights, or it
            diverged before its first checkpoint.
    """
    if not run.config_file.is_file():
        raise run.not_a_run
    config = run.config() | ({"weights": tested} if tested else {})
    check_tested(config)
    never_saved = not run.checkpoint.is_file() and not run.cleaned_file.is_file()
    if never_saved and run.finished and (how := divergence(run.result())):
        raise UserError(f"{run.path} diverged before its first checkpoint ({how}): there are no weights")
    weights = final_weights(run, config)
    tokenizer = Tokenizer(run.tokenizer_file)
    transformer = build.model(config, len(tokenizer))
    trained_with = (read_json(run.environment_file) or {}).get("matmul")
    choose_matmul(DEFAULT, transformer, trained_with, accelerator="auto")
    keep_large_blocks()
    load_weights(transformer, weights)
    for note in notes_on_code([run.result()] if run.finished else []):
        log.warning("%s: %s", run.path, note)  # its weights were made by other code than computes with them here
    return config, transformer.eval(), tokenizer


def require_same_subwords(run: RunDir, store: TokenStore, tokenizer: Tokenizer) -> None:
    """Check that prepared text has the subwords that a run was trained with.

    Raises:
        UserError: it has others.
    """
    if store.tokenizer.model_file.read_bytes() != tokenizer.model_file.read_bytes():
        raise UserError(f"the text has changed since {run.path} was trained: its subwords are no longer the same")
