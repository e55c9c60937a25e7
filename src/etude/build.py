"""From a frozen config to objects. The one place that knows which part takes which."""

from pathlib import Path
from typing import Any

import torch
from hydra.errors import InstantiationException
from hydra.utils import instantiate

from etude.config.explain import explain
from etude.data import batching
from etude.data.batching import Batch
from etude.data.store import Limits, TokenSplit, TokenStore, prepare
from etude.data.tokenizer import PAD, Tokenizer
from etude.decoding.beam import BeamSearch
from etude.decoding.translator import Translator
from etude.errors import UserError
from etude.model.transformer import Transformer
from etude.rundir import RunDir
from etude.training.checkpoints import model_weights, read_checkpoint
from etude.training.loss import LabelSmoothing
from etude.training.module import TranslationModule

Config = dict[str, Any]

_PARTS = ("position", "attention", "scale", "kernel", "norm", "residual", "feedforward", "tying", "init")


def make(node: Config, *positional: Any) -> Any:
    """The object that a config node names; a partial one is called with what only code knows.

    Raises:
        UserError: the class refuses its values.
    """
    try:
        made = instantiate(node)
        return made(*positional) if node.get("_partial_") else made
    except (InstantiationException, ValueError) as error:
        cause = error if isinstance(error, ValueError) else error.__cause__
        if isinstance(cause, ValueError):
            raise UserError(f"{cause} ({node['_target_']})") from error
        raise explain(error) or error from error


def token_store(config: Config) -> TokenStore:
    """The corpus of the config as numbers: made once, shared by all runs."""
    corpus, tokenizer = make(config["data"]), make(config["tokenizer"])
    return prepare(corpus, tokenizer, Path(config["cache_dir"]), Limits(max_pieces=config["budget"]["max_pieces"]))


def model(config: Config, vocab_size: int) -> Transformer:
    """The Transformer of the config, with fresh weights."""
    sizes = config["model"]
    try:
        parts = {name: instantiate(sizes[name]) for name in _PARTS}
        return Transformer(vocab_size, n_layers=sizes["n_layers"], dropout=sizes["dropout"], **parts)
    except ValueError as error:
        raise UserError(f"this model cannot be built: {error}") from error


def training_module(config: Config, transformer: Transformer) -> TranslationModule:
    """What Lightning trains."""
    return TranslationModule(
        transformer,
        loss=make(config["loss"], PAD),
        likelihood=LabelSmoothing(PAD, smoothing=0.0),
        optimizer=instantiate(config["optimizer"]),
        schedule=make(config["schedule"]),
        seed=config["seed"],
    )


def evaluation_batches(config: Config, split: TokenSplit) -> list[Batch]:
    """Every pair of a split once, in batches as large as those of training."""
    budget = config["budget"]
    sizes = {name: budget[name] for name in ("source_tokens", "target_tokens")}
    return batching.evaluation_batches(split, **sizes)


def translator(config: Config, transformer: Transformer, tokenizer: Tokenizer, search: BeamSearch) -> Translator:
    """Lines to lines, in batches as large as those of training."""
    limits = config["budget"]
    return Translator(
        transformer,
        tokenizer,
        search,
        batch_tokens=limits["source_tokens"],
        max_source_pieces=limits["max_pieces"],
    )


def device(name: str) -> torch.device:
    """Where to compute: "auto" is a GPU where there is one.

    Raises:
        UserError: there is no such device here.
    """
    try:
        wanted = torch.device("cuda" if name == "auto" and torch.cuda.is_available() else name.replace("auto", "cpu"))
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device={name} is not to be had here: say device=cpu, or auto") from error
    return wanted


def trained(run: RunDir) -> tuple[Config, Transformer, Tokenizer]:
    """What a run learned: its config, the model with its weights, in evaluation mode, and its word pieces.

    Raises:
        UserError: the directory holds no run, or its checkpoint is missing or torn.
    """
    if not run.config_file.is_file():
        raise UserError(f"{run.path} is not the directory of a run: it has no config.yaml; name one under runs/")
    config, checkpoint = run.config(), read_checkpoint(run.checkpoint)
    tokenizer = Tokenizer(run.tokenizer_file)
    transformer = model(config, len(tokenizer))
    try:
        transformer.load_state_dict(model_weights(checkpoint))
    except RuntimeError as error:
        raise UserError(f"{run.checkpoint} does not fit the model of {run.config_file}: train the run again") from error
    return config, transformer.eval(), tokenizer
