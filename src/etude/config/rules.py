"""Check what neither types nor constructors can: ranges, names, and parts that must fit each other.

Each error says what to change. What a class alone knows of its sizes, its constructor says, with a ValueError.
"""

import re
from collections.abc import Mapping
from typing import Any

from etude.config.callback_rules import check_callbacks
from etude.config.ranges import check_ranges
from etude.config.signature import signature
from etude.config.task_rules import check_task, class_name
from etude.config.wandb_rules import check_wandb
from etude.errors import UserError, did_you_mean
from etude.study.study import value_at

Config = Mapping[str, Any]

_IN_A_RESULT = ("valid", "test", "parameters", "vocabulary", "decoding_seconds", "tokens", "seconds", "steps", "flops")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def check_rules(config: Config) -> None:
    """Check the rules of a training run, given that names and types are valid.

    Raises:
        UserError: the first rule that is broken.
    """
    check_ranges(config)  # first, for many sizes follow from these
    for key in ("runs_dir", "cache_dir"):
        if config[key] == "":
            raise UserError(f"{key} is empty: name a folder, such as {key}={key.removesuffix('_dir')}")
    if config["objective"].partition(".")[0] not in _IN_A_RESULT:
        raise UserError(
            f"objective={config['objective']} is not a number in the result of a run; "
            f"{did_you_mean(config['objective'], _IN_A_RESULT)} (of valid and test one number: valid.perplexity)"
        )
    for key in ("study", "arm"):
        if not _NAME.fullmatch(config[key]):
            raise UserError(f"{key}={config[key]} cannot name a folder; use letters, digits, '_', '-' and '.'")
    check_wandb(config)
    _schedule_gives_the_rate(config)
    _average_fits(config)
    check_callbacks(config)
    _positions_fit(config)
    _stacks_fit(config)
    _norms_are_used(config)
    _own_files_are_named(config)
    check_task(config)
    _trainer_fits(config)


def _schedule_gives_the_rate(config: Config) -> None:
    """Check that only the schedule sets the learning rate, and no callback.

    An optimizer multiplies the rate of étude's schedules by its `lr`, which must be 1. Torch's schedulers need an `lr`.
    """
    for name, part in (config.get("callbacks") or {}).items():
        if str(part["_target_"]).rpartition(".")[2] in ("LearningRateFinder", "StochasticWeightAveraging"):
            raise UserError(
                f"callbacks.{name} would set the learning rate, which the schedule gives at every update: leave it out "
                "(budget.lr_factor changes the rate, callbacks=ema averages weights)"
            )
    target, own = value_at(config, "optimizer._target_"), value_at(config, "optimizer.lr")
    if value_at(config, "schedule._partial_"):
        if own is None:
            raise UserError(
                f"{value_at(config, 'schedule._target_')} changes the optimizer's learning rate, and {target} is given "
                "none: choose one that has a rate and say it, such as optimizer=adamw optimizer.lr=0.0005; a schedule "
                "that is called with a step instead has no _partial_ in its YAML"
            )
        return
    rate = signature(target).defaults.get("lr", 1) if target and own is None else own
    if rate not in (None, 1):
        raise UserError(
            f"optimizer.lr is {rate} in {target}, which would multiply the learning rate that the schedule gives: "
            "say optimizer.lr=1 (where it has no such key, +optimizer.lr=1); budget.lr_factor changes the rate"
        )


def _average_fits(config: Config) -> None:
    """Check that all checkpoints to be averaged lie within the run."""
    checkpoints, every = config["averaging"]["checkpoints"], config["averaging"]["every"]
    steps = config["budget"]["max_steps"]
    if checkpoints and steps - (checkpoints - 1) * every < 1:
        raise UserError(
            f"averaging.checkpoints={checkpoints}, {every} steps apart, reach back before the first of "
            f"budget.max_steps={steps}: say averaging.checkpoints={(steps - 1) // every + 1}, or lower averaging.every"
        )


def _own_files_are_named(config: Config) -> None:
    """Check the keys of `data=files` that lie below `valid` and `test`."""
    if not _is(config, "data", "FilesCorpus"):
        return
    for split in ("valid", "test"):
        files = value_at(config, f"data.{split}")
        if not isinstance(files, Mapping) or not all(isinstance(file, str | None) for file in files.values()):
            raise UserError(
                f"data.{split} must hold names of files, not {files!r}: say data.{split}.tsv=pairs.tsv, or "
                f"data.{split}.source=a.en and data.{split}.target=a.de"
            )


def _positions_fit(config: Config) -> None:
    """Check that a table of positions holds the longest source and its translation."""
    table, tokens = value_at(config, "model.position.max_length"), value_at(config, "budget.max_tokens")
    extra = value_at(config, "decoding.max_len_offset") or 0
    columns = tokens + 1
    padding = -columns % 8  # of a batch on a GPU (Batch.to); a config is to be sound on any machine
    longest = columns + max(padding, extra)
    if table is not None and table < longest:
        offset = f" and decoding.max_len_offset={extra}" if extra else ""
        offset = " and its padding on a GPU" if padding > extra else offset
        raise UserError(
            f"model.position.max_length={table} is shorter than a text may become, {longest} tokens with "
            f"budget.max_tokens={tokens}{offset}: say model.position.max_length={longest}, or lower the others"
        )


def _stacks_fit(config: Config) -> None:
    """Check that positions, alignment and attention suit the stacks and each other."""
    if _is(config, "model", "EncoderDecoder") and value_at(config, "model.decoder") is None:
        raise UserError("model.decoder=null leaves no decoder: model=encoder_only is a model without one")
    alignment = value_at(config, "model.decoder.alignment")
    if _is(config, "model.decoder", "RecurrentDecoder") and not isinstance(alignment, Mapping):
        raise UserError(f"model.decoder.alignment is {alignment!r}, no alignment: say model/decoder/alignment=none")
    without_attention = (
        _is(config, "model.encoder", "ConvolutionEncoder", "RecurrentEncoder", "NoEncoder"),
        _is(config, "model.decoder", "ConvolutionDecoder", "RecurrentDecoder"),
    )
    if all(without_attention) and _is(config, "model.position", "Rotary", "Alibi", "Shaw", "T5"):
        raise UserError(
            "this position scheme acts on the scores of self-attention, and neither encoder nor decoder has any: "
            "say model/position=sinusoidal"
        )
    if _is(config, "model.attention", "LinearAttention") and value_at(config, "model.attention_dropout"):
        raise UserError("model/attention=linear has no dropout of its weights: say model.attention_dropout=0")
    if _is(config, "model.attention", "LinearAttention") and _is(config, "model.position", "Alibi", "Shaw", "T5"):
        raise UserError(
            "model/attention=linear has no softmax, and this position scheme adds to its scores: "
            "say model/position=rope, or one that adds to the embeddings"
        )


def _norms_are_used(config: Config) -> None:
    if _is(config, "model.residual", "ReZero") and not _is(config, "model.norm", "NoNorm"):
        raise UserError("model/residual=rezero stands in for every norm, and none would be used: say model/norm=none")


def _trainer_fits(config: Config) -> None:
    if value_at(config, "trainer.limit_val_batches") is not None:
        raise UserError(
            "trainer.limit_val_batches would validate the shortest sentences alone, for batches are sorted by length, "
            "and with 0 write no checkpoint: leave it out"
        )
    if value_at(config, "trainer.compile") != "reduce-overhead":
        return
    for key in ("devices", "micro_batches", "num_nodes"):  # a gradient must not outlive the CUDA graph that computed it
        if (value_at(config, f"trainer.{key}") or 1) != 1:
            raise UserError(
                f"trainer.compile=reduce-overhead records the step of one device, whole, and trainer.{key} shares it "
                f"out: say trainer.{key}=1, or trainer.compile=true"
            )


def _is(config: Config, part: str, *names: str) -> bool:
    """Return whether the part is one of these classes of étude's."""
    return class_name(value_at(config, part)) in names
