"""One run, from its frozen config to its result: build, fit, evaluate, write `result.json`.

Called by `etude train` in the same process, and by a sweep as `python -m etude.train RUN_DIR`.
"""

import logging
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from lightning import Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from rich.console import Console

from etude import build
from etude.data.datamodule import TranslationData
from etude.data.store import TokenStore
from etude.environment import environment
from etude.errors import UserError
from etude.evaluation.bleu import bleu
from etude.evaluation.paper_bleu import paper_bleu
from etude.evaluation.perplexity import negative_log_likelihood, perplexity
from etude.files import replacing, write_json, write_text
from etude.logs import logging_to, quiet_libraries
from etude.model.transformer import Transformer
from etude.rundir import RunDir
from etude.training.allocator import keep_large_blocks
from etude.training.averaging import KeepWeights, averaged_checkpoints, mean_weights
from etude.training.checkpoints import Checkpoints, DirectIO, read_checkpoint
from etude.training.loggers import finish
from etude.training.module import TranslationModule
from etude.training.records import Records
from etude.training.sinks import Bar, LoggerSink, LogSink, MetricsFile, ProgressFile, Sink

log = logging.getLogger(__name__)

_RESUMABLE = "the same command goes on from the last checkpoint"


def train(run: RunDir) -> dict[str, Any]:
    """Train, evaluate and record a frozen run; goes on from its last checkpoint if it has one.

    Returns:
        What `result.json` holds.

    Raises:
        UserError: the data cannot be had, the config does not fit it, or the disk is full.
    """
    if run.finished:
        return run.result()
    with _alone(run):
        return _train(run)


@contextmanager
def _alone(run: RunDir) -> Iterator[None]:
    """No other process works on the run meanwhile; the lock dies with its owner.

    Raises:
        UserError: another process has it.
    """
    try:
        with FileLock(run.path / ".lock", timeout=1):
            yield
    except Timeout as error:
        raise UserError(f"another process is training {run.path}: wait for it, or stop it first") from error


def _train(run: RunDir) -> dict[str, Any]:
    quiet_libraries()
    keep_large_blocks()
    config = run.config()
    averaged = averaged_checkpoints(run, config)
    build.shapes(config)  # what a part refuses is told before anything is downloaded or counted
    store = build.token_store(config)
    with replacing(run.tokenizer_file) as temporary:
        shutil.copyfile(store.tokenizer.model_file, temporary)
    write_json(run.environment_file, environment())
    torch.manual_seed(config["seed"])
    transformer = build.model(config, store.vocab_size)
    module = build.training_module(config, transformer)
    loggers: list[Logger] = build.make(config["logger"], run, config)
    done, result = False, {}
    try:
        progress = ProgressFile(run.progress_file, config["budget"]["max_steps"])
        seconds, device = _fit(run, config, module, store, loggers, progress, averaged)
        if averaged:
            transformer.load_state_dict(mean_weights([*averaged.values()]))
        progress.evaluating()
        result = _evaluate(run, config, transformer.to(device), store)
        result |= {"tokens": module.tokens, "seconds": round(seconds, 1), "finished": True}
        run.write_result(result)
        done = True
    finally:
        finish(loggers, _summary(result), exit_code=0 if done else 1)
    return result


def _fit(
    run: RunDir,
    config: dict[str, Any],
    module: TranslationModule,
    store: TokenStore,
    loggers: list[Logger],
    progress: ProgressFile,
    averaged: dict[int, Path],
) -> tuple[float, torch.device]:
    """Train up to the budget; the seconds it took in all, and the device it ran on."""
    budget = config["budget"]
    steps = budget["max_steps"]
    start = _start(run, averaged)
    data = TranslationData(
        store,
        source_tokens=budget["source_tokens"],
        target_tokens=budget["target_tokens"],
        length_noise=budget["length_noise"],
        seed=config["seed"],
        start_step=start,
    )
    bar = Bar(Console(stderr=True), steps)
    sinks: list[Sink] = [MetricsFile(run.metrics_file, start), progress, LogSink(steps), bar]
    sinks += [LoggerSink(logger) for logger in loggers]
    records = Records(sinks, every=min(50, max(1, steps // 50)), max_steps=steps)
    try:
        trainer = Trainer(
            accelerator=config["trainer"]["accelerator"],
            devices=1,
            precision=config["precision"],
            max_steps=steps,
            max_epochs=-1,
            val_check_interval=budget["valid_every"],
            check_val_every_n_epoch=None,
            num_sanity_val_steps=0,
            logger=loggers,
            callbacks=[records, KeepWeights(averaged), Checkpoints(run.checkpoint)],
            plugins=[DirectIO()],
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=run.path,
        )
    except (MisconfigurationException, ValueError) as error:
        raise UserError(f"trainer or precision does not fit this machine: {error}; trainer=cpu always does") from error
    if start:
        log.info("going on from step %d of %d", start, steps)
    try:
        with bar.progress:
            trainer.fit(module, data, ckpt_path=run.checkpoint if start else None, weights_only=True)
    except SystemExit as stop:  # how Lightning ends on Ctrl-C
        raise KeyboardInterrupt(_RESUMABLE) from stop
    if trainer.global_step < steps:
        raise KeyboardInterrupt(_RESUMABLE)
    return records.seconds, trainer.strategy.root_device


def _start(run: RunDir, averaged: dict[int, Path]) -> int:
    """The step to go on from: the last checkpoint's, or 0 where one to be averaged with later ones has gone since."""
    step = read_checkpoint(run.checkpoint)["global_step"] if run.checkpoint.exists() else 0
    gone = [file for kept, file in averaged.items() if kept <= step and not file.exists()]
    if gone:
        log.warning("%s has gone, which is to be averaged with later ones: starting from the beginning", gone[0])
    return 0 if gone else step


def _evaluate(run: RunDir, config: dict[str, Any], transformer: Transformer, store: TokenStore) -> dict[str, Any]:
    """Perplexity of the validation and test sets, both BLEUs of the test set; the hypotheses go to their file."""
    likelihoods = {}
    for name in ("valid", "test"):
        batches = build.evaluation_batches(config, store.split(name))
        nats, tokens = negative_log_likelihood(transformer, batches)
        likelihoods[name] = {"perplexity": perplexity(nats, tokens), "tokens": tokens}
    started = time.perf_counter()
    sources, references = store.text("test")
    translate = build.translator(config, transformer, store.tokenizer, build.make(config["decoding"])).translate
    hypotheses = translate(sources)
    decoding_seconds = time.perf_counter() - started
    write_text(run.hypotheses_file("test"), "".join(f"{line}\n" for line in hypotheses))
    score = bleu(hypotheses, references)
    paper = paper_bleu(hypotheses, references, build.make(config["data"]).languages[1])
    return {
        "study": config["study"],
        "arm": config["arm"],
        "seed": config["seed"],
        "id": run.path.name.rpartition("-")[2],
        "parameters": sum(parameter.numel() for parameter in transformer.parameters()),
        "steps": config["budget"]["max_steps"],
        "valid": likelihoods["valid"],
        "test": {
            **likelihoods["test"],
            "bleu": score.score,
            "signature": score.signature,
            "paper_bleu": paper.score,
            "paper_signature": paper.signature,
            "sentences": score.sentences,
        },
        "decoding_seconds": round(decoding_seconds, 2),
        "vocabulary": store.vocab_size,
        "store": store.path.name,
    }


def _summary(result: dict[str, Any]) -> dict[str, Any]:
    """The figures of a result for a dashboard."""
    if not result:
        return {}
    flat = {f"{split}/{key}": value for split in ("valid", "test") for key, value in result[split].items()}
    return flat | {key: result[key] for key in ("parameters", "steps", "tokens", "seconds")}


def main() -> None:
    """`python -m etude.train RUN_DIR`: a run whose config was frozen by a sweep; what it says goes to its log."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m etude.train RUN_DIR")
    run = RunDir(Path(sys.argv[1]))
    logging_to(None)
    try:
        train(run)
    except UserError as error:
        sys.exit(f"etude: {error}")


if __name__ == "__main__":
    main()
