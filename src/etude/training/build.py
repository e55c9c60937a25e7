"""Build what Lightning trains, its callbacks and loggers, and its data from a frozen config."""

from functools import partial
from typing import Any

from lightning.pytorch.utilities.exceptions import MisconfigurationException
from torch import nn

from etude.config.parts import make
from etude.data.datamodule import TextDataModule
from etude.data.store import TokenStore
from etude.data.tokenizer import PAD
from etude.errors import UserError
from etude.model.encoder_decoder import EncoderDecoder
from etude.processor.matmul import choose_matmul
from etude.tasks import build
from etude.training.compiled import compile_step
from etude.training.loss import LabelSmoothing
from etude.training.module import TrainingModule
from etude.training.optimizer import make_optimizer
from etude.training.processes import broadcast_from_rank0
from etude.training.schedule import as_scheduler
from etude.training.score import validate_translations

Config = dict[str, Any]


def training_module(config: Config, transformer: EncoderDecoder, store: TokenStore | None = None) -> TrainingModule:
    """Build the module that Lightning trains; without the `store` of its text, its validations translate nothing."""
    if mode := config["trainer"]["compile"]:
        compile_step(transformer, mode)
    schedule = config["schedule"]
    return TrainingModule(
        transformer,
        loss=make(config["loss"], PAD),
        nll=LabelSmoothing(PAD, smoothing=0.0),
        optimizer=partial(make_optimizer, config["optimizer"]),
        scheduler=partial(make, schedule)
        if schedule.get("_partial_")
        else as_scheduler(make(schedule), config["budget"]["max_steps"]),
        seed=config["seed"],
        score=partial(_scores, config, store) if store else lambda model: {},
    )


def _scores(config: Config, store: TokenStore, model: nn.Module) -> dict[str, float]:
    """Return the numbers of `validate_translations`, without signatures."""
    found = validate_translations(config, model, store)
    return {name: found[name] for name in config["budget"].get("val_metrics") or ()}


def choose_matmul_of_run(config: Config, model: EncoderDecoder, begun_with: str | None) -> str:
    """Choose how a run multiplies matrices, the same way in all its processes; see `choose_matmul`."""
    choose = partial(
        choose_matmul,
        config["trainer"]["matmul"],
        model,
        accelerator=config["trainer"]["accelerator"],
        precision=config["precision"],
    )
    return choose(broadcast_from_rank0(choose(begun_with)))


def make_parts(section: str, nodes: Config, kind: type[Any], /, **given: Any) -> list[Any]:
    """Make the parts of a section of the config, `callbacks` or `logger`.

    Args:
        section: the name of the section.
        nodes: the config of each part, by name.
        kind: the class that each part must be an instance of.
        given: further arguments, by name, for the parts that take them.

    Raises:
        UserError: a part refuses its values, or is of another class.
    """
    made = []
    for name, node in nodes.items():
        try:
            part = make(node, **given)
        except (ImportError, MisconfigurationException, TypeError) as error:
            raise UserError(f"{section}.{name}: {error} ({node['_target_']})") from error
        several = part if isinstance(part, list) else [part]  # empty for a logger that is switched off
        if not all(isinstance(one, kind) for one in several):
            raise UserError(f"{section}.{name}: {node['_target_']} makes no {kind.__name__} of Lightning's")
        made += several
    return made


def training_data(config: Config, text: TokenStore, *, start_step: int) -> TextDataModule:
    """Build the data module: training batches from `start_step` on, and the validation text."""
    return TextDataModule(
        text,
        **build.batch_sizes(config),
        length_noise=config["budget"]["length_noise"],
        seed=config["seed"],
        start_step=start_step,
        limit=config["trainer"]["limit_train_batches"],
        examples=partial(build.examples, config),
    )
