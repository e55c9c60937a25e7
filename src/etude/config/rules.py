"""Check what neither types nor constructors can: the ranges of numbers, names, and parts that must fit each other.

Each error says what to change. What a class alone knows of its sizes, its constructor says, with a ValueError. Of the
user's own classes nothing is known here: they find out what they lack when they are built.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from itertools import combinations
from math import inf, isfinite
from operator import le
from typing import Any

from etude.config.schema import Run, hints_of
from etude.config.signature import signature
from etude.errors import UserError, did_you_mean
from etude.store.tested_weights import best_callbacks, check_tested, tested_weights
from etude.store.wandb_id import MAX_NAME, MAX_TAG
from etude.study.arm_names import find_arm, is_arm
from etude.study.arms import override_key
from etude.study.metrics import rises
from etude.study.study import leaves

Config = Mapping[str, Any]
At = Callable[[str], Any]  # the value of a dotted key; None if there is none

_AT_LEAST = {  # any other whole number of a class of ours: 1
    0: """
        seed model.seed data.seed averaging.checkpoints budget.length_noise decoding.alpha decoding.max_len_offset
        data.silver loss.pad model.attention.window model.attention.span.window model.encoder.around
        model.decoder.around model.feedforward.balance.coefficient model.feedforward.balance.rate
        model.feedforward.behind model.feedforward.inside.balance.coefficient model.feedforward.inside.shared
        model.feedforward.shared model.tying.reserved trainer.fast_dev_run
    """,
    1: "data.max_ratio model.position.base trainer.num_nodes",
    2: "model.scale.length tokenizer.input_sentence_size",
    4: "model.position.buckets",
    5: "tokenizer.vocab_size",  # four are special tokens
}
_ABOVE_ZERO = """
    budget.lr_factor budget.steps model.init.std model.norm.eps model.attention.eps model.tying.eps optimizer.eps
    scale.width scale.depth scale.head_count
    schedule.factor schedule.peak trainer.gradient_clip_val
"""
_SHARES = """
    model.dropout model.attention_dropout loss.smoothing budget.cooldown optimizer.beta1 optimizer.beta2
    data.silver_errors
"""
WIDEST_BEAM = 10_000  # whose scores of a few thousand subwords still fit into memory
_LARGEST_SEED = 2**32 - 1  # the largest that every random number generator accepts
_COVERAGE = "tokenizer.character_coverage"
_IN_A_RESULT = (
    *("valid", "test", "early"),
    *("parameters", "vocabulary", "decoding_seconds", "tokens", "seconds", "steps", "flops"),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MONITORED = ("val_loss", "val_perplexity")
_NOT_THE_BEST = (  # settings of ModelCheckpoint by which it saves at other moments, or elsewhere
    *("every_n_train_steps", "every_n_epochs", "train_time_interval", "save_on_train_epoch_end"),
    *("save_last", "dirpath"),
)
_ARTIFACTS = ("checkpoint", "hypotheses")
_ON_QUERIES_AND_KEYS = ("Rotary", "PartialRotary", "RotaryInSomeLayers", "Shaw")
_NOT_AT_ZERO = {  # parts whose branches init=fixup cannot let add nothing
    "encoder": ("EvolvedEncoder", "ConvolutionEncoder"),
    "decoder": ("EvolvedDecoder", "ConvolutionDecoder"),
    "feedforward.inside": ("ProductKeyMemory",),
}
_LANGUAGE_MODELS = {"LanguageModelling", "Agreement"}
_TEXTLESS = {"MaskedLanguageModelling", "LanguageModelling", "SpanCorruption"}
_DECODER_TASKS = {"Translation", "SpanCorruption", *_LANGUAGE_MODELS}
_OTHER_SCORES = {"perplexity", "tokens", "sentences", "pairs", "accuracy", "bits_per_byte", "signature"}  # of a result


def check_rules(config: Config) -> None:
    """Check the rules of a training run, given that names and types are valid.

    Raises:
        UserError: the first rule that is broken.
    """
    own = {key: config[key] for key in config if key != "hydra"}
    at = dict(leaves(own)).get
    _check_ranges(own, at)  # first, for many sizes follow from these
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
    _check_wandb(at)
    _schedule_gives_the_rate(config, at)
    _average_fits(config)
    _validation_metrics_are_metrics(config)
    _callbacks_fit(config, at)
    _positions_fit(at)
    _stacks_fit(config, at)
    _norms_are_used(at)
    _loss_sees_log_z(at)
    _own_files_are_named(config, at)
    _contexts_fit(at)
    _task_fits(config, at)
    _trainer_fits(at)


def check_choices(config: Mapping[str, Any], typed: Sequence[str]) -> None:
    """Check that the model uses each part that was chosen for it.

    Args:
        config: the resolved config, with its `choices`.
        typed: the overrides; those of the chosen arm are added.

    Raises:
        UserError: a part is not used.
    """
    model, choices = config["model"], config["choices"]
    takes = signature(model["_target_"])
    arm = str(choices.get("experiment"))
    for override in [*(find_arm(arm)[2] if is_arm(arm) else ()), *typed]:
        group = override_key(override)
        first, _, part = group.partition("/")
        key = part.partition("/")[0]
        if first != "model" or key not in model or choices.get(group) is None:
            continue
        if model[key] is None or not (key in takes.keywords or takes.open):
            raise UserError(
                f"{group}={choices[group]} is for a model that has such a part, and model={choices['model']} has none: "
                "leave it out, or choose another model"
            )


def _check_ranges(config: Config, at: At) -> None:
    """Check the range of every number that has one."""
    _require(at, _ABOVE_ZERO, lambda value: 0 < value < inf, "be above 0 and finite")
    others = {key for keys in _AT_LEAST.values() for key in keys.split()}
    for key, value in _whole_numbers(config, hints_of(Run)):
        if value < 1 and key not in others:
            raise UserError(f"{key} must be at least 1, not {value}")
    for least, keys in _AT_LEAST.items():
        _require(at, keys, partial(le, least), f"be at least {least}")
        _require(at, keys, isfinite, "be finite")
    _require(at, "decoding.beam", lambda beam: beam <= WIDEST_BEAM, f"be at most {WIDEST_BEAM:,}")
    _require(at, "seed", lambda seed: seed <= _LARGEST_SEED, f"be at most {_LARGEST_SEED}")
    _require(at, _SHARES, lambda value: 0 <= value < 1, "lie in [0, 1)")
    _require(at, _COVERAGE, lambda value: 0.98 <= value <= 1, "lie in [0.98, 1], as SentencePiece has it")


def _whole_numbers(section: Config, hints: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int]]:
    """Yield key and value of every whole number of étude's sections and parts, those of a section before its parts'.

    Parts that have names of the user's, such as metrics, are left out.
    """
    found = {name: section.get(name) for name in hints}
    for name, value in found.items():
        if isinstance(value, int) and hints[name] in (int, int | None):
            yield f"{path}{name}", value
    for name, part in found.items():
        if isinstance(part, Mapping):
            own = hints_of(hints[name]) if is_dataclass(hints[name]) else {}
            taken = signature(part["_target_"]).keywords if _class_name(part.get("_target_")) else {}
            yield from _whole_numbers(part, own | taken, f"{path}{name}.")


def _require(at: At, keys: str, holds: Callable[[float], bool], requirement: str) -> None:
    """Check that the numbers under some keys are in range; other types are skipped, as a class may use them freely."""
    for key in keys.split():
        value = at(key)
        if isinstance(value, int | float) and not holds(value):
            raise UserError(f"{key} must {requirement}, not {value}")


def _check_wandb(at: At) -> None:
    """Check what W&B would refuse only when the run begins, which would then go on unlogged."""
    _check_place(at("logger.wandb.project"), at("logger.wandb.entity"))
    for tag in _list_at(at, "tags", "pilot"):
        if not isinstance(tag, str) or not 0 < len(tag) <= MAX_TAG:
            raise UserError(
                f"logger.wandb.tags: {tag!r} is not a tag of W&B, which is a text of 1 to {MAX_TAG} characters"
            )
    for artifact in _list_at(at, "artifacts", "checkpoint"):
        if artifact not in _ARTIFACTS:
            raise UserError(f"logger.wandb.artifacts: no {artifact!r}; {did_you_mean(str(artifact), _ARTIFACTS)}")


def _check_place(project: Any, entity: Any) -> None:
    """Check the names of the project and of the user or team that it belongs to."""
    way_out = "a team's is told by logger.wandb.entity=TEAM logger.wandb.project=NAME"
    for key, name in (("project", project), ("entity", entity)):
        if isinstance(name, str) and (wrong := re.search(r"[/\\#?%:]", name)):
            raise UserError(f"logger.wandb.{key}={name}: no {key} of W&B has {wrong[0]!r} in its name; {way_out}")
    if isinstance(project, str) and not 0 < len(project) <= MAX_NAME:
        raise UserError(
            f"logger.wandb.project={project}: the name of a project has 1 to {MAX_NAME} characters; "
            "leave it out, and the project is etude"
        )


def _list_at(at: At, key: str, example: str) -> Sequence[Any]:
    found = at(f"logger.wandb.{key}") or []
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise UserError(f"logger.wandb.{key} must be a list, such as [{example}], not {found!r}")
    return found


def _schedule_gives_the_rate(config: Config, at: At) -> None:
    """Check that only the schedule sets the learning rate, and no callback.

    An optimizer multiplies the rate of étude's schedules by its `lr`, which must be 1. Torch's schedulers need an `lr`.
    """
    for name, part in (config.get("callbacks") or {}).items():
        if str(part["_target_"]).rpartition(".")[2] in ("LearningRateFinder", "StochasticWeightAveraging"):
            raise UserError(
                f"callbacks.{name} would set the learning rate, which the schedule gives at every update: leave it out "
                "(budget.lr_factor changes the rate, callbacks=ema averages weights)"
            )
    target, own = at("optimizer._target_"), at("optimizer.lr")
    if at("schedule._partial_"):
        if own is None:
            raise UserError(
                f"{at('schedule._target_')} changes the optimizer's learning rate, and {target} is given "
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


def _own_files_are_named(config: Config, at: At) -> None:
    """Check the keys of `data=files` that lie below `valid` and `test`."""
    if not _is(at, "data", "FilesCorpus"):
        return
    for split in ("valid", "test"):
        files = config["data"].get(split)
        if not isinstance(files, Mapping) or not all(
            isinstance(file, str | None) or (key == "target" and _are_texts(file)) for key, file in files.items()
        ):
            raise UserError(
                f"data.{split} must hold names of files, not {files!r}: say data.{split}.tsv=pairs.tsv, or "
                f"data.{split}.source=a.en and data.{split}.target=a.de, or [a.de,b.de] for several references"
            )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _contexts_fit(at: At) -> None:
    """Check that a batch holds a context of running text, and that the task reads such a text."""
    task, running = _class_name(at("task._target_")), _is_running(at)
    if running and task not in ("", "LanguageModelling", "SpanCorruption"):
        raise UserError(
            f"{task} reads lines, and data=text is running text: say task=language_modelling, or task=span_corruption"
        )
    if not running and task == "SpanCorruption" and _class_name(at("data._target_")):
        raise UserError("SpanCorruption reads running text, and this data has lines: say data=text")
    context = at("budget.context") or at("budget.max_tokens")
    if running and task == "LanguageModelling" and at("budget.target_tokens") < context:
        raise UserError(
            f"budget.target_tokens={at('budget.target_tokens')} does not hold a context of {context} tokens: raise it, "
            "or lower budget.context"
        )
    if running and at("data.stride") is not None and (at("data.stride") > context or task == "SpanCorruption"):
        raise UserError(
            f"data.stride={at('data.stride')} is for a language model, and at most budget.context={context}: "
            "lower it, or leave it out"
        )


def _is_running(at: At) -> bool:
    return _is(at, "data", "TextFiles", "TextOfHuggingFace")


def _positions_fit(at: At) -> None:
    """Check that tables with a row for each position hold the longest source and its translation."""
    tokens = at("budget.max_tokens")
    extra = at("decoding.max_len_offset") or 0
    key, columns = "max_tokens", tokens + 1
    if _is_running(at) and not at("decoding._target_"):
        tokens = columns = at("budget.context") or tokens
        key = "context" if at("budget.context") else key
    padding = -columns % 8  # of a batch on a GPU (Batch.to); a config is to be sound on any machine
    longest = columns + max(padding, extra)
    for table in ("model.position.max_length", "model.attention.scores.max_length"):
        if at(table) is not None and at(table) < longest:
            offset = f" and decoding.max_len_offset={extra}" if extra else ""
            offset = " and its padding on a GPU" if padding > extra else offset
            raise UserError(
                f"{table}={at(table)} is shorter than a text may become, {longest} tokens with "
                f"budget.{key}={tokens}{offset}: say {table}={longest}, or lower the others"
            )


def _stacks_fit(config: Config, at: At) -> None:
    """Check that positions, alignment and attention suit the stacks and each other."""
    if _is(at, "model", "EncoderDecoder") and config["model"].get("decoder") is None:
        raise UserError("model.decoder=null leaves no decoder: model=encoder_only is a model without one")
    alignment = (config["model"].get("decoder") or {}).get("alignment")
    if _is(at, "model.decoder", "RecurrentDecoder") and not isinstance(alignment, Mapping):
        raise UserError(f"model.decoder.alignment is {alignment!r}, no alignment: say model/decoder/alignment=none")
    without_attention = (
        _is(at, "model.encoder", "ConvolutionEncoder", "RecurrentEncoder", "NoEncoder"),
        _is(at, "model", "EncoderOnly") or _is(at, "model.decoder", "ConvolutionDecoder", "RecurrentDecoder"),
    )
    for stack in ("encoder", "decoder"):
        if _is(at, f"model.{stack}", *(f"{kind}{stack.capitalize()}" for kind in ("Shared", "Universal"))):
            for part in ("position", "attention.span"):
                if len({*(at(f"model.{part}.pattern") or ())}) > 1:
                    raise UserError(
                        f"model.{part}.pattern tells layers apart, and the {stack} has one, which it uses again and "
                        f"again: write one word into the pattern, or say model/{stack}=transformer"
                    )
            if (at("model.feedforward.every") or 1) > 1 and stack in (at("model.feedforward.stacks") or ()):
                raise UserError(
                    f"model.feedforward.every tells layers apart, and the {stack} has one, which it uses again and "
                    f"again: say model.feedforward.every=1, or model/{stack}=transformer"
                )
    if (all(without_attention) or at("model.attention.convolution._target_")) and _is(
        at, "model.position", *_ON_QUERIES_AND_KEYS, "Alibi", "T5"
    ):
        raise UserError(
            "this position scheme acts on the scores of self-attention, which this model does not have: "
            "say model/position=sinusoidal"
        )
    if _is(at, "model.attention", "LinearAttention") and at("model.attention_dropout"):
        raise UserError("model/attention=linear has no dropout of its weights: say model.attention_dropout=0")
    if _is(at, "model.attention", "LinearAttention") and _is(at, "model.position", "Alibi", "Shaw", "T5"):
        raise UserError(
            "model/attention=linear has no softmax, and this position scheme adds to its scores: "
            "say model/position=rope, or one that adds to the embeddings"
        )
    if _is(at, "model.attention.mix", "Alone") and _is(at, "model.position", *_ON_QUERIES_AND_KEYS):
        raise UserError(
            "model/attention/mix=alone has no products of queries and keys, on which this position scheme acts: "
            "say model/position=t5, or one that adds to the embeddings"
        )
    if _is(at, "model.encoder", "FunnelEncoder") and _is(at, "model", "EncoderOnly"):
        raise UserError(
            "model/encoder=funnel leaves fewer positions than there are tokens, and model=encoder_only answers at each "
            "token: say model/encoder=transformer"
        )
    if _is(at, "model.encoder", "FunnelEncoder") and _is(at, "model.attention.values", "ValueResidual"):
        raise UserError(
            "model/attention/values=residual adds the values of the first layer, which has more positions than the "
            "last of model/encoder=funnel: say model/attention/values=own"
        )
    stacks = {"encoder": not _is(at, "model.encoder", "NoEncoder"), "decoder": not _is(at, "model", "EncoderOnly")}
    there = [stack for stack, has in stacks.items() if has]
    if _is(at, "model.feedforward", "InSomeLayers") and not {*there} & {*at("model.feedforward.stacks")}:
        raise UserError(
            f"model.feedforward.stacks names no stack of this model: say model.feedforward.stacks=[{there[0]}]"
        )


def _norms_are_used(at: At) -> None:
    if _is(at, "model.init", "Fixup"):
        for part, kinds in _NOT_AT_ZERO.items():
            if _is(at, f"model.{part}", *kinds):
                raise UserError(
                    f"model/init=fixup starts with branches that add nothing, and does not know those of model.{part}: "
                    "say another model/init, or stacks and feed-forward networks of the Transformer"
                )
    if _is(at, "model.residual", "ReZero", "Fixup") and not _is(at, "model.norm", "NoNorm"):
        name = _class_name(at("model.residual._target_")).lower()
        raise UserError(f"model/residual={name} stands in for every norm, and none would be used: say model/norm=none")


def _loss_sees_log_z(at: At) -> None:
    tying = _class_name(at("model.tying._target_"))
    if _is(at, "loss", "ZLoss") and tying in ("AdaptiveSoftmax", "MixtureOfSoftmaxes"):
        raise UserError(
            f"loss=z_loss does nothing with model.tying={tying}, whose logits are log-probabilities: their log Z is 0; "
            "say loss=label_smoothing, or choose another model/tying"
        )


def _trainer_fits(at: At) -> None:
    if at("trainer.limit_val_batches") is not None:
        raise UserError(
            "trainer.limit_val_batches would validate the shortest sentences alone, for batches are sorted by length, "
            "and with 0 write no checkpoint: leave it out"
        )
    if at("trainer.compile") != "reduce-overhead":
        return
    for key in ("devices", "micro_batches", "num_nodes"):  # a gradient must not outlive the CUDA graph that computed it
        if (at(f"trainer.{key}") or 1) != 1:
            raise UserError(
                f"trainer.compile=reduce-overhead records the step of one device, whole, and trainer.{key} shares it "
                f"out: say trainer.{key}=1, or trainer.compile=true"
            )
    if any(_is(at, f"model.{part}", "MixtureOfExperts") for part in ("feedforward", "feedforward.inside")):
        raise UserError(
            "trainer.compile=reduce-overhead repeats sentences to fill a batch up, and a mixture of experts would take "
            "them for others: say trainer.compile=true"
        )


def _validation_metrics_are_metrics(config: Config) -> None:
    """Check that the metrics of a validation are among those of the run, whose task generates text for them."""
    names = config["budget"].get("val_metrics") or []
    if names and _class_name(config["task"]["_target_"]) in _TEXTLESS:
        raise UserError(
            f"budget.val_metrics={list(names)}: {_class_name(config['task']['_target_'])} writes no text that could be "
            "compared: leave it out; callbacks may monitor val_loss"
        )
    for name in map(str, names):
        if name not in config["metrics"]:
            has = ", ".join(config["metrics"]) or "none"
            raise UserError(
                f"budget.val_metrics: {name} is no metric of this run, which has {has}: say metrics=[...] too"
            )


def _callbacks_fit(config: Config, at: At) -> None:
    """Check that monitored metrics exist, and that one part keeps the weights that are tested."""
    parts = {name: str(part["_target_"]) for name, part in (config.get("callbacks") or {}).items()}
    ours = all(target.startswith(("etude.", "lightning.")) for target in parts.values())  # others may log more metrics
    logged = [*_MONITORED, *(f"val_{name}" for name in at("budget.val_metrics") or ())]
    for name in parts:
        monitored = at(f"callbacks.{name}.monitor")
        if ours and monitored not in (None, *logged):
            near = did_you_mean(str(monitored), logged)
            metric = str(monitored).removeprefix("val_")
            near = f"say budget.val_metrics=[{metric}]" if metric in config["metrics"] else near
            raise UserError(f"callbacks.{name}.monitor={monitored}: no such metric is logged; {near}")
        if rises(f"valid.{str(monitored).removeprefix('val_')}") and at(f"callbacks.{name}.mode") == "min":
            raise UserError(
                f"callbacks.{name}.monitor={monitored} is better the higher: say callbacks.{name}.mode=max, too"
            )
        if parts[name].endswith(".GradientAccumulationScheduler"):
            raise UserError(
                f"callbacks.{name} would change after how many batches the weights do, and a step of étude is one "
                "update: leave it out (trainer.micro_batches accumulates gradients)"
            )
    keepers = [name for name, target in parts.items() if target.endswith(".ModelCheckpoint")]
    for one, other in combinations(keepers, 2):
        if (metric := at(f"callbacks.{one}.monitor")) and metric == at(f"callbacks.{other}.monitor"):
            raise UserError(
                f"callbacks.{one} and callbacks.{other} both keep checkpoints by {metric}, and which of them keeps the "
                "best could not be told: leave one out, or let it monitor another metric"
            )
    check_tested(config)
    keeping = best_callbacks(config)
    if tested_weights(config) == "best":
        _keeps_the_best(config, at, keeping)
    ending = re.compile(r"\.(EMA|\w*WeightAverag\w*|EarlyStopping|Timer)$")
    others = [name for name, target in parts.items() if ending.search(target)]
    both = "averaging.checkpoints and callbacks.{0} both decide with which weights the run ends: say "
    if at("averaging.checkpoints") and others:
        way_out = "averaging.checkpoints=0, or leave {0} out of callbacks=[...]"
        raise UserError((both + way_out).format(others[0]))
    if at("averaging.checkpoints") and config["weights"] == "auto" and keeping:
        raise UserError((both + "weights=best or weights=average").format(keeping[0]))


def _keeps_the_best(config: Config, at: At, keeping: Sequence[str]) -> None:
    """Check that one callback keeps the checkpoint of the best validation, where Lightning's would not."""
    name, *others = keeping
    best = config["callbacks"][name]
    if others:
        raise UserError(
            f"callbacks.{name} and callbacks.{others[0]} each keep a best checkpoint, and one can be tested: call it "
            "best_checkpoint, or say weights=last"
        )
    steps, val_every = at("budget.max_steps"), at("budget.val_every")
    if steps < val_every and not at("trainer.fast_dev_run"):
        raise UserError(
            f"callbacks.{name} would see no validation in budget.max_steps={steps}: say budget.val_every={steps}"
        )
    if not str(best["_target_"]).endswith(".ModelCheckpoint"):
        return
    wrong = [key for key in _NOT_THE_BEST if best.get(key) is not None and best.get(key) is not False]
    wrong += ["monitor"] * (best.get("monitor") is None) + ["save_top_k"] * (best.get("save_top_k") == 0)
    wrong += ["filename"] * bool(re.search("^(last|previous)$|/", str(best.get("filename"))))
    if wrong:
        raise UserError(
            f"callbacks.{name}.{wrong[0]}: tested is the checkpoint of the best validation, and this would keep "
            "another, or not in the run's folder: leave it as it is by default, or say weights=last"
        )
    averages = [str(part["_target_"]) for part in config["callbacks"].values()]
    if best.get("save_weights_only") and any(one.endswith(".EMA") or "WeightAverag" in one for one in averages):
        raise UserError(
            f"callbacks.{name}.save_weights_only=true would keep the weights without their average, which is what was "
            "validated: leave it out"
        )


def _task_fits(config: Config, at: At) -> None:
    """Check that the task can use the model, the decoding and the metrics."""
    if at("tokenizer.shared") is False and _class_name(config["task"]["_target_"]) not in ("", "Translation"):
        raise UserError("tokenizer.shared=false: two vocabularies are for task=translation alone: leave it out")
    task, model, encoder = (_class_name(at(f"{part}._target_")) for part in ("task", "model", "model.encoder"))
    if model == "EncoderDecoder" and task == "MaskedLanguageModelling":
        raise UserError(f"{task} reads an encoder alone, and this model has a decoder: say model=encoder_only")
    if model == "EncoderOnly" and task in _DECODER_TASKS:
        raise UserError(f"{task} needs a decoder, which model=encoder_only has not: say model=base")
    for key, without in (("decoding", _TEXTLESS | _LANGUAGE_MODELS), ("metrics", _TEXTLESS)):
        if config[key] and task in without:
            raise UserError(f"{task} writes no text that could be searched for or compared: leave {key} out")
    for name in config["metrics"] or ():
        if name in _OTHER_SCORES or name.endswith("_signature"):
            raise UserError(f"metrics.{name}: a result has another number of this name; choose another name")
    if task == "Translation" and not config["decoding"]:
        raise UserError("Translation is scored by what a search finds, and there is none: say decoding=greedy")
    if task == "SpanCorruption" and encoder == "NoEncoder":
        raise UserError("SpanCorruption is read by an encoder, and there is none: say model/encoder=transformer")
    if model == "EncoderDecoder" and task in _LANGUAGE_MODELS and encoder != "NoEncoder":
        raise UserError(f"{task} has no source for an encoder to read: say model/encoder=none")


def _is(at: At, part: str, *names: str) -> bool:
    """Return whether the part is one of these classes of étude's."""
    return _class_name(at(f"{part}._target_")) in names


def _class_name(target: Any) -> str:
    """Return the name of a class if it is one of étude's, else ""."""
    return str(target).rpartition(".")[2] if str(target).startswith("etude.") else ""
