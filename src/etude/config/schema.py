"""What a run's config must hold, section by section: names and types, no defaults (those live in `conf/`).

A `Part` is a node whose `_target_` names a class or function; its schema is that signature.
"""

from dataclasses import dataclass
from typing import Literal


class Part:
    """A node that names its own class by `_target_`."""


class Optimizer(Part):
    """The same, with `groups` of parameters beside the arguments of its class."""


class Parts:
    """A dictionary of parts, each under a name of its own."""

    given: tuple[str, ...] = ()  # what the code gives to a class that takes it


class Callbacks(Parts):
    """Lightning's callbacks, the user's or étude's."""

    given = ("dirpath",)


class Loggers(Parts):
    """Lightning's loggers, the user's or étude's."""

    given = ("run", "config", "save_dir")


class Metrics(Parts):
    """Metrics of translations, each called with hypotheses and references."""

    given = ("hypotheses", "references")


@dataclass
class Scale:
    """Factors on the paper's sizes."""

    width: float
    depth: float
    head_count: float


@dataclass
class Budget:
    """How long to train and on batches of how many tokens."""

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


@dataclass
class Model:
    """Sizes, then the scientific axes."""

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
    attention: Part
    scale: Part
    backend: Part
    position: Part
    norm: Part
    residual: Part
    feedforward: Part
    tying: Part
    init: Part


@dataclass
class Averaging:
    """How many checkpoints the final weights are the mean of, and how many steps lie between two."""

    checkpoints: int
    every: int


@dataclass
class Trainer:
    """Where and how to train; every other flag of Lightning's Trainer may stand here too (`trainer_flags.py`)."""

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"]
    devices: int
    micro_batches: int
    matmul: Literal["auto", "default", "onednn"]
    deterministic: bool
    stop_when_diverged: bool
    gradient_clip_val: float | None
    limit_train_batches: int | None
    fast_dev_run: bool | int


@dataclass
class Run:
    """The whole config of `etude train`."""

    study: str
    arm: str
    seed: int
    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"]
    stale: Literal["keep", "rerun"]
    runs_dir: str
    cache_dir: str
    objective: str
    scale: Scale
    budget: Budget
    averaging: Averaging
    model: Model
    data: Part
    tokenizer: Part
    optimizer: Optimizer
    schedule: Part
    loss: Part
    decoding: Part
    metrics: Metrics
    trainer: Trainer
    callbacks: Callbacks
    logger: Loggers


@dataclass
class Evaluate:
    """The config of `etude evaluate`."""

    run: str
    split: Literal["valid", "test"]
    device: str
    decoding: Part
    metrics: Metrics


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
    device: str
    decoding: Part
