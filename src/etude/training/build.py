"""From a frozen config, or from a trained run, to what Lightning trains and what it has learned."""

from functools import partial
from typing import Any

from lightning.pytorch.utilities.exceptions import MisconfigurationException

from etude.config.parts import make
from etude.data.datamodule import TextDataModule
from etude.data.store import TokenStore
from etude.data.tokenizer import PAD
from etude.errors import UserError
from etude.model.encoder_decoder import EncoderDecoder
from etude.tasks import build
from etude.tasks.build import batch_sizes
from etude.training.compiled import compile_step
from etude.training.loss import LabelSmoothing
from etude.training.module import TrainingModule
from etude.training.optimizer import make_optimizer
from etude.training.schedule import as_scheduler

Config = dict[str, Any]


def training_module(config: Config, transformer: EncoderDecoder) -> TrainingModule:
    """What Lightning trains."""
    if config["trainer"]["compile"]:
        compile_step(transformer)
    schedule = config["schedule"]
    return TrainingModule(
        transformer,
        loss=make(config["loss"], PAD),
        nll=LabelSmoothing(PAD, smoothing=0.0),
        optimizer=partial(make_optimizer, config["optimizer"]),
        scheduler=partial(make, schedule) if schedule.get("_partial_") else as_scheduler(make(schedule)),
        seed=config["seed"],
    )


def make_parts(section: str, nodes: Config, kind: type[Any], /, **given: Any) -> list[Any]:
    """The parts of a section of the config, `callbacks` or `logger`.

    Args:
        section: its name.
        nodes: the parts by name.
        kind: what each must be.
        given: what they may take, by name.

    Raises:
        UserError: one refuses its values, or is of another kind.
    """
    made = []
    for name, node in nodes.items():
        try:
            part = make(node, **given)
        except (ImportError, MisconfigurationException, TypeError) as error:
            raise UserError(f"{section}.{name}: {error} ({node['_target_']})") from error
        several = part if isinstance(part, list) else [part]  # a logger that is switched off is none
        if not all(isinstance(one, kind) for one in several):
            raise UserError(f"{section}.{name}: {node['_target_']} makes no {kind.__name__} of Lightning's")
        made += several
    return made


def training_data(config: Config, text: TokenStore, *, start_step: int) -> TextDataModule:
    """The training batches from a step on, and the validation text."""
    limits = batch_sizes(config)
    return TextDataModule(
        text,
        source_tokens=limits["source_tokens"],
        target_tokens=limits["target_tokens"],
        length_noise=config["budget"]["length_noise"],
        seed=config["seed"],
        start_step=start_step,
        limit=config["trainer"]["limit_train_batches"],
        examples=build.task(config).examples,
    )
