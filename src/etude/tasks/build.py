"""Build the objects of a frozen config: task, token store, model, search, translator, batches.

Lightning is not imported here, as its import takes longer than computing a plan does.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from torch import nn
from torch.overrides import TorchFunctionMode

from etude.config.check import check_model
from etude.config.parts import make, of_today
from etude.config.signature import signature
from etude.data import batching, store
from etude.data.batching import Batch, Examples
from etude.data.corpus import SPLITS, Text
from etude.data.epochs import Epochs
from etude.data.running_text import RunningText
from etude.data.store import Contexts, Split, TokenStore
from etude.data.tokenizer import Tokenizer, Vocabulary
from etude.decoding.beam import BeamSearch
from etude.decoding.translator import Translator
from etude.errors import UserError
from etude.model import precision
from etude.model.encoder_decoder import EncoderDecoder
from etude.store.identity import TRANSLATION
from etude.store.own_parts import blame, hash_targets
from etude.study.study import value_at
from etude.tasks.task import Task

Config = dict[str, Any]


def task(config: Config, verb: str = "") -> Task:
    """Build the task of the config.

    Args:
        config: of a run.
        verb: the command that is applied to the trained run, such as "translate"; "" if any task will do.

    Raises:
        UserError: the task refuses its values, or does not support the verb.
    """
    made: Task = _made("task", config.get("task") or TRANSLATION, Task)
    if verb and verb not in made.verbs:
        raise UserError(
            f"`etude {verb}` has no use for a run whose task is {type(made).__name__}: "
            f"`etude {next(iter(made.verbs), 'evaluate')} run=...` is for what it has learned"
        )
    return made


def examples(config: Config, split: Split) -> Examples:
    """Return the rows of a split as the task of the config reads them.

    Raises:
        UserError: the task reads lines, and this is running text, or the other way round.
    """
    made = task(config)
    return made.contexts(split) if isinstance(split, Contexts) else made.examples(split)


def token_store(config: Config) -> TokenStore:
    """Open the token store of the config; prepare it first if there is none."""
    return store.prepare(*_store_arguments(config), hash_targets({key: config[key] for key in ("data", "tokenizer")}))


def prepared_store(config: Config) -> TokenStore | None:
    """Open the token store of the config; None if it has not been prepared."""
    return store.find_prepared(*_store_arguments(config))


def _store_arguments(config: Config) -> tuple[Text, Vocabulary, Path, int]:
    text, tokenizer = make(config["data"]), _made("tokenizer", config["tokenizer"], Vocabulary)
    limit = context(config) if isinstance(text, RunningText) else config["budget"]["max_tokens"]
    return text, tokenizer, Path(config["cache_dir"]), limit


def context(config: Config) -> int:
    """Return the most tokens of a context of running text."""
    budget = config["budget"]
    return budget.get("context") or budget["max_tokens"]


def is_running(config: Config) -> bool:
    """Return whether the text of a config is running text."""
    return isinstance(make(config["data"]), RunningText)


def _made(section: str, node: Config, base: type) -> Any:
    if not isinstance(made := make(node), base):
        raise UserError(
            f"{section}: {node['_target_']} is not a {section}: derive it from {base.__module__}.{base.__qualname__}"
        )
    return made


def model(config: Config, vocab_size: int) -> EncoderDecoder:
    """Build the model of the config with initial weights: étude's EncoderDecoder, or any class with its interface.

    Args:
        config: of the run.
        vocab_size: the number of tokens of the tokenizer; `model.vocabulary`, if set, asks for more rows.

    Raises:
        UserError: a part refuses its sizes, `model.vocabulary` is too small, or the config is older than the code.
    """
    node = config["model"]
    further = task(config).further_tokens
    rows = node["vocabulary"] or vocab_size + further
    try:
        if rows < vocab_size + further:
            raise UserError(
                f"model.vocabulary={rows} has no room for the {vocab_size + further} tokens of the tokenizer"
                f"{' and the task' * bool(further)}: say model.vocabulary=null, or data.vocab_size={rows - further}"
            )
        with of_today(lambda: check_model(node)):
            takes = signature(node["_target_"]).keywords
            given = {key: value for key, value in (("vocab_size", rows), ("seed", config["seed"])) if key in takes}
            taken = {key: value for key, value in node.items() if key in takes}
            part = instantiate({"_target_": node["_target_"], "_partial_": True} | taken, _convert_="all")
            made: EncoderDecoder = part(**given)
    except Exception as raised:  # torch's errors for negative or huge sizes, or whatever a user's part raises
        error = raised if isinstance(raised, UserError) else raised.__cause__ or raised  # Hydra wraps those of `init`
        where = blame(error, node)
        if isinstance(error, UserError) or not (where or isinstance(error, ValueError | RuntimeError)):
            raise
        kind = "KeyError: " if isinstance(error, KeyError) else ""  # whose text is the key alone
        raise UserError(f"this model cannot be built: {kind}{' '.join(str(error).splitlines())}{where}") from error
    embedding = getattr(made, "embedding", None)
    if config["tokenizer"].get("shared") is False and embedding and embedding.source_table is embedding.target_table:
        raise UserError(
            "tokenizer.shared=false: source and target have a vocabulary each, and cannot be tied to one matrix: say "
            "model/tying=decoder, which ties target and output, or model/tying=none"
        )
    if lacks := [name for name in task(config).methods if not callable(getattr(made, name, None))]:
        raise UserError(f"model: {node['_target_']} has no {' and no '.join(lacks)}, which training and decoding call")
    # Lightning would convert it too, but only after a checkpoint has been loaded into it, and for training alone.
    return made.double() if config.get("precision") == "64-true" else made


def shapes(config: Config) -> EncoderDecoder:
    """Build the model of the config on the meta device, with shapes but no memory, for `tokenizer.vocab_size` tokens.

    It is built on the CPU without initialisation, where memory that is never written to is not taken, and then moved:
    initialising weights on the meta device would import the compiler, which is slow.

    Raises:
        UserError: a part refuses its sizes.
    """
    with _SkipInit():
        return model(config, config["tokenizer"]["vocab_size"]).to("meta")


_FILL_METHODS = (torch.Tensor.uniform_, torch.Tensor.normal_, torch.Tensor.zero_, torch.Tensor.fill_)


class _SkipInit(TorchFunctionMode):
    """Skips the functions of `torch.nn.init` and the methods that fill a tensor."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", "") == torch.nn.init.__name__ or function in _FILL_METHODS:
            return (kwargs or {}).get("tensor", args[0] if args else None)
        return function(*args, **(kwargs or {}))


def check_budget(config: Config, text: TokenStore) -> None:
    """Check before training that every line of every split fits a batch, and that the text suits the task.

    Raises:
        UserError: a line does not fit, or the text does not suit the task.
    """
    for name in SPLITS:
        batching.check_budget(examples(config, text.split(name)), **batch_sizes(config))
    task(config).check_text(text)


def evaluation_batches(config: Config, split: Split) -> list[Batch]:
    """Batch every row of a split once, in batches as large as those of training."""
    return batching.evaluation_batches(examples(config, split), **batch_sizes(config))


def batches_per_epoch(config: Config, split: Split) -> int:
    """Count the training batches that hold every row of a split once."""
    rows, noise = examples(config, split), config["budget"]["length_noise"]
    sizes = batch_sizes(config)
    return len(Epochs(rows.source_lengths, rows.target_lengths, length_noise=noise, seed=config["seed"], **sizes))


def batch_sizes(config: Config) -> dict[str, int]:
    """Return the most tokens that a batch may hold on each side."""
    return {name: config["budget"][name] for name in ("source_tokens", "target_tokens")}


def text_to_translate(config: Config, store: TokenStore, split: str) -> tuple[list[str], list[str]]:
    """Return the first `budget.bleu_sentences` sources of a split, on which BLEU is computed, and their references."""
    first = config["budget"]["bleu_sentences"]
    sources, references = store.text(split)
    return sources[:first], references[:first]


def decoding_config(trained: Config, asked: Config, typed: Iterable[str]) -> Config | None:
    """Return the `decoding` config of a trained run with the user's overrides; None if the run does not translate.

    Args:
        trained: the run's config.
        asked, typed: config and overrides of the command applied to it; `decoding` of the config has today's defaults.

    Raises:
        UserError: `decoding` is overridden for a run that has none, or needs more positions than the run has learned.
    """
    keys = {override.lstrip("+~").partition("=")[0] for override in typed}
    if not trained["decoding"]:
        if searches := sorted(key for key in keys if key.partition(".")[0] == "decoding"):
            raise UserError(f"{searches[0]}: the task of this run does not translate: leave it out")
        return None
    chosen = {key: value for key, value in asked["decoding"].items() if f"decoding.{key}" in keys}
    return check_decoding(trained, asked["decoding"] if "decoding" in keys else trained["decoding"] | chosen)


def check_decoding(trained: Config, search: Config) -> Config:
    """Return the config of a search, if a trained run has the positions that it needs.

    Raises:
        UserError: the run has learned fewer.
    """
    if (offset := search.get("max_len_offset")) is not None:
        check_positions(trained, trained["budget"]["max_tokens"] + 1 + offset, f"decoding.max_len_offset={offset}")
    return search


def check_positions(trained: Config, needed: int, asked: str) -> None:
    """Check that a trained run has as many positions as are needed, if it has learned a vector for each.

    Raises:
        UserError: it has fewer; `asked` is the override that needs them.
    """
    tables = [value_at(trained, f"model.{part}.max_length") for part in ("position", "attention.scores")]
    table = min((length for length in tables if length is not None), default=needed)
    if needed > table:
        raise UserError(f"{asked} needs {needed} positions, and this run has learned {table}: lower it")


def translator(config: Config, transformer: EncoderDecoder, tokenizer: Tokenizer, search: BeamSearch) -> Translator:
    """Build a translator of lines, with batches of the size that the search asks for, else as large as in training."""
    limits, asked = config["budget"], getattr(search, "batch_tokens", None)  # a user's own search need not have it
    return Translator(
        transformer,
        tokenizer,
        search,
        batch_tokens=asked // getattr(search, "beam", 1) if asked else limits["source_tokens"],
        max_source_tokens=limits["max_tokens"],
    )


def autocast(config: Config, model: nn.Module) -> AbstractContextManager[object]:
    """Return the autocast context in which a model computes on its device as in training; see `precision`."""
    return precision.autocast(config["precision"], next(model.parameters()).device)


def device_of_training(config: Config) -> torch.device:
    """Return the device that a run will train on, the first one if there are several."""
    return device("cpu" if config["trainer"]["accelerator"] == "cpu" else "auto")


def device(name: str | torch.device) -> torch.device:
    """Return the device of this name, or this one; "auto" is a GPU if there is one, else the CPU.

    Raises:
        UserError: this machine has no such device.
    """
    try:
        auto = "cuda" if torch.cuda.is_available() else "cpu"
        wanted = torch.device(auto if name == "auto" else name)
        torch.zeros(1, device=wanted)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise UserError(f"device={name} is not available here: say device=cpu, or auto") from error
    return wanted
