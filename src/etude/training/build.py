"""From a frozen config, or from a trained run, to what Lightning trains and what it has learned."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from etude.config.parts import make
from etude.data.datamodule import TextDataModule
from etude.data.store import TokenStore
from etude.data.tokenizer import PAD, Tokenizer
from etude.errors import UserError
from etude.files import read_json
from etude.model.encoder_decoder import EncoderDecoder
from etude.runs.divergence import divergence
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.tasks.build import batch_sizes
from etude.training.allocator import keep_large_blocks
from etude.training.averaging import final_weights
from etude.training.compiled import compile_step
from etude.training.loss import LabelSmoothing
from etude.training.matmul import DEFAULT, choose_matmul
from etude.training.module import TrainingModule
from etude.training.optimizer import make_optimizer
from etude.training.schedule import as_scheduler

Config = dict[str, Any]


def learning_rate(config: Config) -> Callable[[int], float]:
    """The learning rate of update 1, 2, ..., as `training_module` sets it.

    Raises:
        UserError: the schedule refuses its values.
    """
    schedule = config["schedule"]
    if not schedule.get("_partial_"):
        return make(schedule)
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=config["optimizer"]["lr"])
    setting, rates = make(schedule, optimizer), []
    for _ in range(config["budget"]["max_steps"]):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        setting.step()
    return lambda step: rates[step - 1]


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


def load_trained(run: RunDir) -> tuple[Config, EncoderDecoder, Tokenizer]:
    """What a run learned: its config, the model with its weights, in evaluation mode, and its subwords.

    Raises:
        UserError: the directory holds no run, or its checkpoint is missing or torn, as that of a run which diverged
            before its first one.
    """
    if not run.config_file.is_file():
        raise run.not_a_run
    config = run.config()
    never_saved = not run.checkpoint.is_file() and not run.cleaned_file.is_file()
    if never_saved and run.finished and (how := divergence(run.result())):
        raise UserError(f"{run.path} diverged before its first checkpoint ({how}): there are no weights")
    weights = final_weights(run, config)
    tokenizer = Tokenizer(run.tokenizer_file)
    transformer = build.model(config, len(tokenizer))
    choose_matmul(DEFAULT, transformer, (read_json(run.environment_file) or {}).get("matmul"))  # as it was measured
    keep_large_blocks()
    try:
        transformer.load_state_dict(weights)
    except RuntimeError as error:
        raise UserError(
            f"{run.checkpoint.parent} does not fit the model of {run.config_file}: train the run again"
        ) from error
    return config, transformer.eval(), tokenizer
