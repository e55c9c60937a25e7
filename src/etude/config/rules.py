"""What types cannot say: ranges, names, and parts that must fit each other. Each rule names the key and the way out."""

import re
from math import inf

from omegaconf import DictConfig

from etude.config.constraints import at, check_combinations
from etude.config.signature import signature
from etude.errors import UserError, did_you_mean

_AT_LEAST = {
    "seed": 0,
    "tokenizer.vocab_size": 5,  # four of them stand for no text
    "data.train_pairs": 1,
    "data.valid_pairs": 1,
    "data.test_pairs": 1,
    "data.holdout": 1,
    "model.n_layers": 1,
    "model.d_model": 1,
    "model.d_ff": 1,
    "model.heads": 1,
    "model.d_k": 1,
    "model.d_v": 1,
    "averaging.checkpoints": 0,
    "averaging.every": 1,
    "budget.max_steps": 1,
    "budget.warmup_steps": 1,
    "budget.source_tokens": 1,
    "budget.target_tokens": 1,
    "budget.length_noise": 0,
    "budget.max_tokens": 1,
    "budget.val_every": 1,
    "budget.bleu_sentences": 1,
    "budget.pairs": 1,
    "trainer.devices": 1,
    "trainer.micro_batches": 1,
    "trainer.num_nodes": 1,
    "trainer.limit_train_batches": 1,
    "trainer.fast_dev_run": 0,
    "model.vocabulary": 1,
    "model.attention.kv_heads": 1,
    "model.attention.window": 0,
    "model.position.base": 1,
    "model.position.clip": 1,
    "model.position.buckets": 4,
    "model.scale.length": 2,
    "decoding.beam": 1,
    "decoding.alpha": 0,
    "decoding.max_len_offset": 0,
}
_AT_MOST = {"seed": 2**32 - 1}  # what every generator of random numbers takes
_ABOVE_ZERO = (
    "budget.lr_factor",
    "budget.steps",
    "optimizer.eps",
    "model.norm.eps",
    "scale.width",
    "scale.depth",
    "scale.head_count",
    "schedule.factor",
    "schedule.peak",
    "trainer.gradient_clip_val",
)
_SHARES = (  # from 0 up to, but not, 1
    "model.dropout",
    "model.attention_dropout",
    "loss.smoothing",
    "budget.cooldown",
    "optimizer.beta1",
    "optimizer.beta2",
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def check_rules(config: DictConfig) -> None:
    """The rules of a training run whose names and types are right.

    Raises:
        UserError: the first rule that is broken.
    """
    for key, least in _AT_LEAST.items():
        value = _number(config, key)
        if value is not None and not value >= least:
            raise UserError(f"{key} must be at least {least}, not {value}")
    for key, most in _AT_MOST.items():
        if at(config, key) > most:
            raise UserError(f"{key} must be at most {most}, not {at(config, key)}")
    for key in _ABOVE_ZERO:
        value = _number(config, key)
        if value is not None and not 0 < value < inf:
            raise UserError(f"{key} must be above 0 and finite, not {value}")
    for key in _SHARES:
        value = _number(config, key)
        if value is not None and not 0 <= value < 1:
            raise UserError(f"{key} must lie in [0, 1), not {value}")
    if config["runs_dir"] == "":
        raise UserError("runs_dir is empty: name a folder, such as runs_dir=runs")
    for key in ("study", "arm"):
        if not _NAME.fullmatch(config[key]):
            raise UserError(f"{key}={config[key]} cannot name a folder; use letters, digits, '_', '-' and '.'")
    _wandb_takes_it(config)
    _schedule_gives_the_rate(config)
    _positions_suffice(config)
    _average_fits(config)
    _callbacks_find_what_they_need(config)
    check_combinations(config)


def _number(config: DictConfig, key: str) -> float | None:
    """What stands under `key`, where it is a number: another part may mean something else by it."""
    value = at(config, key)
    return value if isinstance(value, int | float) else None


def _wandb_takes_it(config: DictConfig) -> None:
    """W&B refuses some characters, and only when the run begins; and nobody misses an artifact until it has ended."""
    project = at(config, "logger.wandb.project")
    wrong = re.search(r"[/\\#?%:]", project) if isinstance(project, str) else None
    if wrong:
        raise UserError(
            f"logger.wandb.project={project}: a project of W&B has no {wrong[0]!r} in its name; "
            "a team's is told by logger.wandb.entity=TEAM logger.wandb.project=NAME"
        )
    known = ("checkpoint", "hypotheses")
    for artifact in at(config, "logger.wandb.artifacts") or []:
        if artifact not in known:
            raise UserError(f"logger.wandb.artifacts: no {artifact!r}; {did_you_mean(str(artifact), known)}")


def _schedule_gives_the_rate(config: DictConfig) -> None:
    """An optimizer multiplies what the schedule gives by its own rate, which torch's have unless they are told.

    A scheduler of torch's, which is made for the optimizer, is meant to, and needs one.
    """
    target, own = at(config, "optimizer._target_"), at(config, "optimizer.lr")
    if at(config, "schedule._partial_"):
        if own is None:
            raise UserError(
                f"{at(config, 'schedule._target_')} changes the optimizer's learning rate, and {target} is given none: "
                "choose one that has a rate and say it, such as optimizer=adamw optimizer.lr=0.0005"
            )
        return
    rate = signature(target).defaults.get("lr", 1) if target and own is None else own
    if rate not in (None, 1):
        raise UserError(
            f"optimizer.lr is {rate} in {target}, which would multiply the learning rate that the schedule gives: "
            "say optimizer.lr=1 (where it has no such key, +optimizer.lr=1); budget.lr_factor changes the rate"
        )


def _average_fits(config: DictConfig) -> None:
    """The checkpoints to be averaged must lie in the run."""
    checkpoints, every, steps = (at(config, key) for key in _AVERAGE)
    if checkpoints and steps - (checkpoints - 1) * every < 1:
        raise UserError(
            f"averaging.checkpoints={checkpoints}, {every} steps apart, reach back before the first of "
            f"budget.max_steps={steps}: say averaging.checkpoints={(steps - 1) // every + 1}, or lower averaging.every"
        )


def _callbacks_find_what_they_need(config: DictConfig) -> None:
    """The metric that one monitors, a validation to choose from, and nobody else who decides how the run ends."""
    parts = {name: str(part["_target_"]) for name, part in (config.get("callbacks") or {}).items()}
    ours = all(target.startswith(("etude.", "lightning.")) for target in parts.values())  # a user's may log more
    for name in parts:
        monitored = at(config, f"callbacks.{name}.monitor")
        if ours and monitored not in (None, *_MONITORED):
            near = did_you_mean(str(monitored), _MONITORED)
            raise UserError(f"callbacks.{name}.monitor={monitored}: no such metric is logged; {near}")
    steps, val_every = at(config, "budget.max_steps"), at(config, "budget.val_every")
    if "best_checkpoint" in parts and steps < val_every and not at(config, "trainer.fast_dev_run"):
        raise UserError(
            f"callbacks.best_checkpoint would see no validation in budget.max_steps={steps}: "
            f"say budget.val_every={steps}"
        )
    ending = re.compile(r"\.(EMA|\w*WeightAverag\w*|EarlyStopping)$")
    others = [name for name, target in parts.items() if name == "best_checkpoint" or ending.search(target)]
    if at(config, "averaging.checkpoints") and others:
        raise UserError(
            f"averaging.checkpoints and callbacks.{others[0]} both decide with which weights the run ends: say "
            f"averaging.checkpoints=0, or leave {others[0]} out of callbacks=[...]"
        )


_MONITORED = ("val_loss", "val_perplexity")
_AVERAGE = ("averaging.checkpoints", "averaging.every", "budget.max_steps")


def _positions_suffice(config: DictConfig) -> None:
    """A table of positions must hold the longest source with its end, and the longest translation of it."""
    table, pieces, extra = (at(config, key) for key in _LENGTHS)
    if table is not None and extra is not None and table < pieces + 1 + extra:
        needed = pieces + 1 + extra
        raise UserError(
            f"model.position.max_length={table} is shorter than a translation may become, budget.max_tokens={pieces} "
            f"+ 1 + decoding.max_len_offset={extra}: say model.position.max_length={needed}, or lower the others"
        )


_LENGTHS = ("model.position.max_length", "budget.max_tokens", "decoding.max_len_offset")
