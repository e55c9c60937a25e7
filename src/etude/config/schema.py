"""What a run's config must hold, section by section: names and types, no defaults (those live in `conf/`).

A `Part` is a node whose `_target_` names a class or function; its schema is that signature.
"""

from dataclasses import dataclass
from typing import Literal


class Part:
    """A node that names its own class by `_target_`."""


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
    """Where to train: nothing here may change what a run is, only its rounding and the dropout that it draws.

    A run that has diverged finds nothing more, whether it is stopped or not.
    """

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"]
    devices: int
    micro_batches: int
    deterministic: bool
    stop_when_diverged: bool


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
    scale: Scale
    budget: Budget
    averaging: Averaging
    model: Model
    data: Part
    tokenizer: Part
    optimizer: Part
    schedule: Part
    loss: Part
    decoding: Part
    trainer: Trainer
    logger: Part


@dataclass
class Evaluate:
    """The config of `etude evaluate`."""

    run: str
    split: Literal["valid", "test"]
    device: str
    decoding: Part


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
