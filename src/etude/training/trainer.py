"""Train a run with Lightning's Trainer, from its last checkpoint to the end of its budget."""

import logging
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins.environments import ClusterEnvironment, LightningEnvironment, TorchElasticEnvironment
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from rich.console import Console

from etude.config.parts import make
from etude.data.store import TokenStore
from etude.errors import UserError
from etude.files import is_whole_archive
from etude.model.precision import NO_UNITS, computed_precision
from etude.store.run_dir import RunDir
from etude.store.training_dir import TrainingDir
from etude.trained.checkpoint import newest_checkpoint
from etude.training.averaging import KeepWeights
from etude.training.before import trains_on_cpu
from etude.training.build import training_data
from etude.training.checkpoints import Checkpoints, DirectIO
from etude.training.divergence import Diverged, DivergenceWatch, all_finite
from etude.training.lightning_internals import keep_sigterm_to_itself
from etude.training.metrics_callback import Records
from etude.training.metrics_writers import Bar, LoggerSink, LogSink, MetricsFile, ProgressFile, Sink, missing_steps
from etude.training.module import TrainingModule
from etude.training.stopping import StopWhenAsked

log = logging.getLogger(__name__)

_ERROR = re.compile(r"[\w.]*(Error|Exception): ")

_NOT_LIGHTNINGS = {  # keys of `trainer` that are not handed on as they are
    *("strategy", "micro_batches", "matmul", "compile", "stop_when_diverged", "check_parts"),
    *("limit_train_batches", "fast_dev_run"),
}


def rank() -> int:
    """Return the rank of this process among those that train the run; rank 0 writes the files."""
    return int(os.environ["RANK"]) if TorchElasticEnvironment.detect() else 0


Start = tuple[int, bool, Path | None]
"""The step from which a training goes on, whether a callback ended it there, and its checkpoint; None: from scratch."""


def fit(
    run: RunDir,
    training: TrainingDir,
    config: dict[str, Any],
    module: TrainingModule,
    store: TokenStore,
    loggers: list[Logger],
    progress: ProgressFile,
    averaged: dict[int, Path],
    callbacks: list[Callback],
    begin: Start,
) -> tuple[float, int]:
    """Train to the end of the budget, or until a callback ends the training; resume from the last checkpoint, if any.

    Args:
        run: the run that is trained, in whose directory loggers and profilers write.
        training: its training.
        config: its config.
        module: the module to train.
        store: the text.
        loggers: Lightning's loggers.
        progress: the file that `etude status` and sweeps read.
        averaged: checkpoints to keep for averaging, step -> file.
        callbacks: the callbacks of the config.
        begin: where the training begins or goes on, see `find_start`.

    Returns:
        The seconds of training in all, validation included; and the number of steps.

    Raises:
        Stopped: the run was asked to stop, by a signal or its search; it can resume from a checkpoint of that step.
        Diverged: the loss or a weight is not finite, and `trainer.stop_when_diverged` is set.
        UserError: the trainer's settings do not fit this machine; the GPU assigned to the run does not answer; a file
            cannot be written; the checkpoint belongs to another run.
    """
    budget, where = config["budget"], config["trainer"]
    precision: Any = computed_precision(config["precision"], "cpu" if trains_on_cpu(config) else "gpu")
    _gpus_answer(where["accelerator"])
    steps, micro_batches = budget["max_steps"], where["micro_batches"]
    start, ended, checkpoint = begin
    data = training_data(config, store, start_step=start)
    bar = Bar(Console(stderr=True), steps)
    every = min(50, max(1, steps // 50))  # steps between two rows of metrics
    sinks: list[Sink] = []
    if rank() == 0:
        if precision != config["precision"]:
            log.warning("precision=%s: %s; computing in float32", config["precision"], NO_UNITS)
        if lost := missing_steps(training.metrics_file, start, every=every):
            log.warning(
                "%s has lost rows of %d steps, from %d to %d, which its curves will lack: training goes on",
                *(training.metrics_file, len(lost), lost[0], lost[-1]),
            )
        scores = [f"valid_{name}" for name in budget.get("val_metrics") or ()]
        sinks = [
            MetricsFile(training.metrics_file, start, scores),
            progress,
            LogSink(steps),
            bar,
            *map(LoggerSink, loggers),
        ]
    if where["stop_when_diverged"] or rank() == 0:  # every process stops by itself, only rank 0 reports
        sinks.append(DivergenceWatch(stop=where["stop_when_diverged"]))
    records = Records(sinks, every=every, max_steps=steps)
    checkpoints = Checkpoints(training.checkpoint)
    cluster = _processes(run, where)
    flags = {
        key: make(value, dirpath=run.path) if isinstance(value, dict) else value
        for key, value in where.items()
        if key not in _NOT_LIGHTNINGS and value is not None
    }
    try:
        trainer = Trainer(
            **flags,
            strategy=_shared_among(cluster) if isinstance(cluster, TorchElasticEnvironment) else "auto",
            precision=precision,
            max_steps=start if ended else steps,
            max_epochs=-1,
            accumulate_grad_batches=micro_batches,
            val_check_interval=budget["val_every"] * micro_batches,
            check_val_every_n_epoch=None,
            num_sanity_val_steps=0,
            logger=loggers,
            callbacks=[
                records,
                *callbacks,
                *([KeepWeights(averaged)] if averaged else []),
                checkpoints,
                StopWhenAsked(run, checkpoints, val_every=budget["val_every"]),
            ],
            plugins=[DirectIO(training), *([cluster] if isinstance(cluster, LightningEnvironment) else [])],
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            default_root_dir=run.path,
        )
    except (MisconfigurationException, TypeError, ValueError) as error:
        way_out = "; trainer=cpu always does" if where["accelerator"] == "gpu" or torch.cuda.is_available() else ""
        raise UserError(f"trainer or precision does not fit this machine: {error}{way_out}") from error
    if trainer.precision != precision:  # Lightning takes another one where there is no GPU
        raise UserError(f"precision={config['precision']} needs a GPU: here, say precision={trainer.precision}")
    keep_sigterm_to_itself(trainer)
    if start:
        log.info("going on from step %d of %d", start, steps)
    try:
        with bar.shown():
            trainer.fit(module, data, ckpt_path=checkpoint, weights_only=True)
    except MisconfigurationException as error:  # for example, a callback monitors an unknown metric
        raise UserError(f"Lightning does not train this: {error}") from error
    except torch._dynamo.exc.TorchDynamoException as error:
        raise UserError(
            f"this cannot be compiled: {_why_not_compiled(str(error))}; trainer.compile=false trains without"
        ) from error
    except SystemExit as stop:  # how Lightning ends on an impatient Ctrl-C
        raise KeyboardInterrupt from stop
    if where["stop_when_diverged"] and not all_finite(module):  # in the last update, after which no loss is computed
        raise Diverged("a weight is not a finite number", step=trainer.global_step, seconds=records.seconds)
    return records.seconds, trainer.global_step


def _why_not_compiled(message: str) -> str:
    """Return how the message of a compiler begins, and the last error in it, which caused those above."""
    lines = message.splitlines()
    return " ".join(dict.fromkeys([*lines[:2], *[line for line in lines if _ERROR.match(line)][-1:]]))


def _gpus_answer(accelerator: str) -> None:
    """Check that a run to which a GPU was assigned does not silently train on the CPU.

    Raises:
        UserError: CUDA_VISIBLE_DEVICES names a GPU on a machine that has some, and PyTorch finds none.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    given = re.match(r"\s*(\d|GPU-|MIG-)", named) and shutil.which("nvidia-smi")  # without the driver there is no GPU
    if accelerator == "auto" and given and not torch.cuda.is_available():
        raise UserError(
            f"CUDA_VISIBLE_DEVICES={named}, but PyTorch {torch.__version__} finds no GPU there: look at nvidia-smi, "
            "or say trainer=cpu to train on the processor"
        )


def find_start(training: TrainingDir, averaged: dict[int, Path]) -> Start:
    """Return `newest_checkpoint`, or no checkpoint if one that is to be averaged with later ones is lost."""
    step, ended, checkpoint = newest_checkpoint(training.checkpoint)
    gone = [file for kept, file in averaged.items() if kept <= step and not is_whole_archive(file)]
    if gone:
        log.warning(
            "%s, which is to be averaged with later ones, %s: starting from the beginning",
            gone[0],
            "is incomplete or damaged" if gone[0].exists() else "has gone",
        )
        return 0, False, None
    if checkpoint != training.checkpoint:  # a damaged one, which the next save would put in place of the only good one
        training.checkpoint.unlink(missing_ok=True)
    return step, ended, checkpoint


def _shared_among(cluster: ClusterEnvironment) -> DDPStrategy:
    """Make the strategy of several processes. Each keeps its own buffers: its position table fits its own sentences."""
    return DDPStrategy(cluster_environment=cluster, gradient_as_bucket_view=True, broadcast_buffers=False)


def _processes(run: RunDir, where: Mapping[str, Any]) -> ClusterEnvironment:
    """Choose the cluster environment explicitly: Lightning would take any SLURM job for one of its own processes.

    Raises:
        UserError: the run needs several machines, and no process was started on each of them.
    """
    nodes, devices = where.get("num_nodes") or 1, where["devices"]
    if nodes > 1 and not TorchElasticEnvironment.detect():
        raise UserError(
            f"trainer.num_nodes={nodes} needs processes on each of them: on each, say `torchrun --nnodes {nodes} "
            f"--nproc-per-node {devices} --rdzv-backend c10d --rdzv-endpoint HOST -m etude.training.run {run.path}`"
        )
    return TorchElasticEnvironment() if nodes * devices > 1 else LightningEnvironment()
