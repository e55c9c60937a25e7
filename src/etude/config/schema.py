"""The schema of a run's config, section by section: names and types, without defaults, which are in `conf/`.

A `Part` is a node whose `_target_` names a class or function; its schema is the signature of that.
"""

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, get_type_hints


class Part:
    """A node that names its class by `_target_`."""


class Factory(Part):
    """A part with `_partial_: true`, which the code calls each time it needs an object."""


class Optimizer(Factory):
    """A factory with `groups` of parameters besides the arguments of its class."""


Parts = dict[str, Part]
"""A dictionary of named parts."""

GIVEN = {
    "callbacks": ("dirpath",),
    "logger": ("run", "config", "save_dir"),
    "metrics": ("hypotheses", "references", "sources"),
    "model": ("vocab_size", "seed"),
}
"""Parameters that the code gives to the parts of these sections that accept them, so that the config need not."""


@dataclass
class Scale:
    """Factors on the paper's sizes."""

    width: float
    depth: float
    head_count: float


@dataclass
class Budget:
    """How long to train, and the number of tokens per batch."""

    steps: float
    max_steps: int
    warmup_steps: int
    lr_factor: float
    cooldown: float
    source_tokens: int
    target_tokens: int
    length_noise: float
    max_tokens: int
    val_every: int
    bleu_sentences: int | None
    pairs: int
    test_pairs: int
    context: int | None = None  # of running text alone
    val_metrics: list | None = None
    val_sentences: int | None = None


@dataclass
class Model:
    """Sizes, then the axes of variation; further parameters of the model's class may be added."""

    _target_: str
    vocabulary: int | None
    n_layers: int
    d_model: int
    d_ff: int
    heads: int
    d_k: int | None
    d_v: int | None
    dropout: float
    attention_bias: bool
    attention_dropout: float
    encoder: Factory
    decoder: Factory | None
    attention: Factory
    scale: Factory
    backend: Factory
    position: Factory
    norm: Factory
    residual: Factory
    feedforward: Factory
    tying: Factory
    init: Part


@dataclass
class Averaging:
    """How many checkpoints are averaged for the final weights, and how many steps apart they are."""

    checkpoints: int
    every: int


@dataclass
class Trainer:
    """Where and how to train. Those with a default are flags of Lightning's Trainer that a config may add."""

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"]
    devices: int
    strategy: Literal["ddp"]
    micro_batches: int
    matmul: Literal["auto", "default", "onednn", "tf32"]
    compile: bool | Literal["reduce-overhead"]
    deterministic: bool
    stop_when_diverged: bool
    check_parts: bool
    gradient_clip_val: float | None
    limit_train_batches: int | None
    fast_dev_run: bool | int
    benchmark: Any = None
    detect_anomaly: Any = None
    enable_autolog_hparams: Any = None
    gradient_clip_algorithm: Any = None
    inference_mode: Any = None
    limit_val_batches: Any = None
    log_every_n_steps: Any = None
    model_registry: Any = None
    num_nodes: int | None = None
    profiler: Any = None
    sync_batchnorm: Any = None


@dataclass
class Run:
    """The whole config of `etude train`."""

    study: str
    arm: str
    seed: int
    precision: Literal["auto", "32-true", "bf16-mixed", "16-mixed", "64-true"]
    stale: Literal["keep", "rerun"]
    runs_dir: str
    cache_dir: str
    objective: str
    scale: Scale
    budget: Budget
    averaging: Averaging
    weights: Literal["auto", "last", "best", "average"]
    task: Part
    model: Model
    data: Part
    tokenizer: Part
    optimizer: Optimizer
    schedule: Part
    loss: Factory
    decoding: Part | None
    metrics: Parts
    trainer: Trainer
    callbacks: Parts
    logger: Parts
    init_from: str | dict | None = None  # `etude.store.parent` checks it


@dataclass
class Evaluate:
    """The config of `etude evaluate`."""

    run: str
    split: Literal["valid", "test"]
    weights: Literal["last", "best", "average"] | None
    device: str
    decoding: Part
    metrics: Parts


@dataclass
class Analyze:
    """The config of `etude analyze`."""

    run: str
    sentences: int
    seed: int
    beams: list
    alphas: list
    maps: int
    removal_bleu: bool
    device: str


@dataclass
class Translate:
    """The config of `etude translate`."""

    run: str
    n_best: int
    scores: bool
    alignments: bool
    layer: int | None
    head: int | None
    format: str | None
    device: str
    decoding: Part


@dataclass
class Generate:
    """The config of `etude generate`."""

    run: str
    prompt: str | None
    device: str
    sampling: Part


_STEPS, _VALIDATION, _TEST = "budget.max_steps", "budget.val_every", "budget.bleu_sentences"
INSTEAD = {
    "accumulate_grad_batches": "trainer.micro_batches",
    "barebones": None,
    "callbacks": "callbacks",
    "check_val_every_n_epoch": _VALIDATION,
    "default_root_dir": "runs_dir",
    "enable_checkpointing": "callbacks=best_checkpoint",
    "enable_model_summary": "etude show",
    "enable_progress_bar": None,
    "limit_predict_batches": _TEST,
    "limit_test_batches": _TEST,
    "logger": "logger",
    "max_epochs": _STEPS,
    "max_steps": _STEPS,
    "max_time": "`timeout 1h etude train ...` (of a sweep, hydra.launcher.timeout)",
    "min_epochs": _STEPS,
    "min_steps": _STEPS,
    "num_sanity_val_steps": _VALIDATION,
    "overfit_batches": "trainer.limit_train_batches",
    "plugins": None,
    "precision": "precision",
    "reload_dataloaders_every_n_epochs": None,
    "use_distributed_sampler": None,
    "val_check_interval": _VALIDATION,
}
"""Flags of Lightning's Trainer that étude sets itself, and the key to use instead."""


@cache
def hints_of(schema: type) -> dict[str, Any]:
    """Return the type of each key of a dataclass of this module, in its order."""
    hints = get_type_hints(schema)
    return {field.name: hints[field.name] for field in fields(schema)}
