"""Run one experiment from its frozen config to its result: build, fit, evaluate, write `result.json`.

`etude train` calls this in its own process, a sweep as `python -m etude.training.run RUN_DIR`. A run on several devices
has a process for each: all of them train, rank 0 does the rest.
"""

from etude.lean_import import import_lightning

import_lightning()  # before the modules that import it

import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning import Callback
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins.environments import TorchElasticEnvironment

from etude.config import parts
from etude.config.check import check
from etude.config.explain import explain
from etude.data.store import TokenStore
from etude.errors import UserError
from etude.files import read_json, remove_leftovers, replacing, write_json
from etude.logs import logging_to, quiet_libraries
from etude.model.encoder_decoder import EncoderDecoder
from etude.paths import import_from_here
from etude.processor.allocator import keep_large_blocks
from etude.store.divergence import EXIT_STATUS, divergence
from etude.store.environment import environment, libraries_of
from etude.store.lock import hold
from etude.store.own_parts import blame
from etude.store.provenance import Code, code_of
from etude.store.results_version import merge_code
from etude.store.run_dir import RunDir
from etude.store.run_state import StoppedBySearch
from etude.store.training_dir import TrainingDir
from etude.tasks import build
from etude.tasks.metrics import check_tokenizers, scored_by
from etude.tasks.text_size import flops_to_train
from etude.trained.checkpoint import hash_weights, model_weights, previous, read_checkpoint
from etude.trained.weights import (
    averaged_checkpoints,
    final_checkpoints,
    final_weights,
    find_weights,
    load_weights,
)
from etude.training.before import check_device, check_own_parts
from etude.training.build import choose_matmul_of_run, make_parts, training_module
from etude.training.divergence import Diverged, no_scores
from etude.training.further import begin_where_a_shorter_one_ended
from etude.training.initial import take_weights
from etude.training.loggers import finish, record
from etude.training.metrics_writers import ProgressFile
from etude.training.optimizer import make_optimizer
from etude.training.processes import broadcast_from_rank0, leave_processes
from etude.training.schedule import check_schedule
from etude.training.score import evaluate, score_early
from etude.training.stopping import Stopped, end_on_sigterm
from etude.training.trainer import Start, find_start, fit, rank

_GOES_ON = "the same command goes on from the last checkpoint"

log = logging.getLogger(__name__)


def train(run: RunDir) -> dict[str, Any]:
    """Train, evaluate and record a frozen run; resume from the last checkpoint of its training, if there is one.

    1. A finished run is left as it is.
    2. Only one process works on a run: it holds the run's lock.
    3. If its training is not complete, for this run or for another that shares it, train it under the training's lock.
    4. Evaluate the weights, and write the result last.

    Args:
        run: a run with a frozen config.

    Returns:
        The content of `result.json`, which says whether the run diverged; empty where another rank wrote it.

    Raises:
        Busy: another process works on the run or on its training.
        UserError: the data is not available, the config does not fit it or the current code, or the disk is full.
        StoppedBySearch: the run has come to where its search wants it to stop.
        KeyboardInterrupt: Ctrl-C or a signal asked the run to stop; the same command resumes it.
    """
    if run.finished:
        return run.result()
    with parts.of_today(lambda: check(run.config())), hold(run.lock_file, run.busy) if rank() == 0 else nullcontext():
        if run.finished and not TorchElasticEnvironment.detect():  # the other ranks wait for this one, and not for ever
            return run.result()
        config = _shorten(run.config())
        progress = ProgressFile(run.progress_file, config["budget"]["max_steps"])
        if rank() == 0:
            remove_leftovers(run.path)
            progress.starting()
        prepared = _prepare(run, config)
        try:
            return _train_and_evaluate(run, config, prepared, progress)
        except Stopped as stop:
            if stop.by_search is None:
                raise KeyboardInterrupt(_GOES_ON) from stop
            if rank() == 0:
                progress.put("training", step=stop.step)
            raise StoppedBySearch(
                f"{stop.by_search} at step {stop.step}, as its search or W&B asks; {_GOES_ON}"
            ) from stop
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(_GOES_ON) from stop
        except Exception as error:
            if explain(error) is None and (where := blame(error, config)):
                error.add_note(f"etude: {type(error).__name__}{where}: {' '.join(str(error).splitlines())}")
            raise


@dataclass(frozen=True)
class _Prepared:
    """What is made and checked of a run before anything is trained."""

    store: TokenStore
    shapes: EncoderDecoder
    averaged: dict[int, Path]
    callbacks: list[Callback]
    flops: float  # of the whole training
    environment: dict[str, Any]  # now, as the code on disk may change before the end


def _prepare(run: RunDir, config: dict[str, Any]) -> _Prepared:
    """Let parts refuse their values before anything is downloaded or counted; then prepare the text."""
    quiet_libraries()
    keep_large_blocks()
    training = run.own_training
    shapes = build.shapes(config)
    make_optimizer(config["optimizer"], shapes.named_parameters())
    callbacks = make_parts("callbacks", config["callbacks"], Callback, dirpath=training.checkpoint.parent)
    check_schedule(config)
    if config["decoding"]:
        parts.try_out(config["decoding"])
    check_tokenizers(config)
    store = build.token_store(config)
    _same_text(run, store)
    build.check_budget(config, store)
    flops = flops_to_train(config) if rank() == 0 else 0.0
    made = environment(config)
    if rank() == 0:
        check_own_parts(config, store.vocab_size)
    return _Prepared(store, shapes, averaged_checkpoints(training, config), callbacks, flops, made)


def _train_and_evaluate(
    run: RunDir, config: dict[str, Any], prepared: _Prepared, progress: ProgressFile
) -> dict[str, Any]:
    training, first = run.own_training, rank() == 0
    with ExitStack() as stack:
        lock = stack.enter_context(ExitStack())
        weights = find_weights(training, config) if first else None
        if first and weights is None:
            training.path.mkdir(parents=True, exist_ok=True)
            lock.enter_context(hold(training.lock_file, training.busy))
            weights = find_weights(training, config)  # another process may have trained it meanwhile
            if weights is None and not config["trainer"]["fast_dev_run"]:
                begin_where_a_shorter_one_ended(training)
        todo = broadcast_from_rank0(weights is None)
        start = broadcast_from_rank0(find_start(training, prepared.averaged) if first and todo else (0, False, None))
        begun_in = read_json(training.environment_file) or {}  # not before: another process may have begun it just now
        prepared.environment["matmul"] = choose_matmul_of_run(config, prepared.shapes, begun_in.get("matmul"))
        if todo and first:
            _begin(training, prepared, begun_in if start[2] else None)  # else from scratch, whatever was begun there
        elif first:
            log.info("%s is trained already", training.path)
        loggers = stack.enter_context(_logged(run, config)) if first else []
        if todo:
            _train(run, training, config, prepared, loggers, progress, start)
        leave_processes()
        if not first:
            return {}
        lock.close()
        result = _evaluate(run, config, prepared, weights, progress)
        run.copy_training()
        record(loggers, run, result, final_checkpoints(training, config) if result["weights"] else ())
    run.write_result(result)  # last: a run that is killed before its loggers have the result is evaluated again
    return result


@contextmanager
def _logged(run: RunDir, config: dict[str, Any]) -> Iterator[list[Logger]]:
    """Make the run's loggers, and finish them with the outcome of the context; a fast dev run has none."""
    nodes = {} if config["trainer"]["fast_dev_run"] else config["logger"]
    loggers: list[Logger] = make_parts("logger", nodes, Logger, run=run, config=config, save_dir=run.path)
    exit_code = 1
    try:
        yield loggers
        exit_code = 0
    except Stopped as stop:
        exit_code = 1 if stop.by_search is None else 0
        raise
    finally:
        finish(loggers, exit_code=exit_code)


def _begin(training: TrainingDir, prepared: _Prepared, begun_in: dict[str, Any] | None) -> None:
    """Record with which subwords and in which environment a training begins, or goes on that was `begun_in` another."""
    remove_leftovers(training.path)
    made = prepared.environment
    if begun_in is not None:
        if code_of(begun_in) is not Code.SAME:
            log.warning("this run was begun by other code than today's; stale=rerun starts it from the beginning")
        made = made | merge_code(begun_in, made)
    with replacing(training.tokenizer_file) as temporary:
        shutil.copyfile(prepared.store.tokenizer.model_file, temporary)
    write_json(training.environment_file, made | {"libraries": libraries_of(made, begun_in or {})})


def _train(
    run: RunDir,
    training: TrainingDir,
    config: dict[str, Any],
    prepared: _Prepared,
    loggers: list[Logger],
    progress: ProgressFile,
    start: Start,
) -> None:
    """Train to the end, or until it diverges, and write `trained.json`; all ranks do."""
    torch.manual_seed(config["seed"])
    model = build.model(config, prepared.store.vocab_size)
    if config.get("init_from") and start[2] is None:
        written = training.init_from_file if rank() == 0 else None
        take_weights(model, config["init_from"], prepared.store.tokenizer, written)
    module = training_module(config, model, prepared.store)
    how = None
    try:
        seconds, steps = fit(
            run,
            training,
            config,
            module,
            prepared.store,
            loggers,
            progress,
            prepared.averaged,
            prepared.callbacks,
            start,
        )
    except Diverged as end:
        seconds, steps, how = end.seconds, end.step, end
    except Stopped:  # all processes are, at the same step
        leave_processes()
        raise
    if rank() > 0:
        return
    saved = training.checkpoint.is_file()  # not if it diverged before the first validation
    made = read_json(training.environment_file) or {}
    write_json(
        training.trained_file,
        {"step": steps, "tokens": module.tokens, "seconds": round(seconds, 1), "diverged": str(how) if how else None}
        | {"weights": hash_weights(model_weights(read_checkpoint(training.checkpoint))) if saved else None}
        | {key: made.get(key) for key in ("results_version", "own_files", "libraries")},
    )
    previous(training.checkpoint).unlink(missing_ok=True)


def _evaluate(
    run: RunDir,
    config: dict[str, Any],
    prepared: _Prepared,
    weights: dict[str, torch.Tensor] | None,
    progress: ProgressFile,
) -> dict[str, Any]:
    """Score the weights of a complete training; return the result of the run, without scores if that diverged.

    The weights are loaded if they are None.
    """
    training = run.own_training
    trained = read_json(training.trained_file)
    if how := trained["diverged"]:
        both = f"{run.path} and {training.path}"
        log.error("diverged: %s; trainer.stop_when_diverged=false goes on, once %s are deleted", how, both)
        scores = no_scores(config["metrics"]) | {"diverged": how}
    else:
        progress.put("evaluating", step=trained["step"])
        model = build.model(config, prepared.store.vocab_size)
        load_weights(model, final_weights(training, config) if weights is None else weights)
        scores = evaluate(run, config, model.to(build.device_of_training(config)), prepared.store)
        if why := divergence(scores):
            log.error("diverged: %s", why)
            scores["diverged"] = why
        scores["early"] = score_early(training.metrics_file, config["budget"]["max_steps"])
    steps, now = trained["step"], prepared.environment
    return {
        **{key: config[key] for key in ("study", "arm", "seed")},
        "id": run.path.name.rpartition("-")[2],
        "training": run.training,
        "parameters": _count_parameters(config, prepared.store.vocab_size),
        "vocabulary": prepared.store.vocab_size,
        "store": prepared.store.path.name,
        "scored_by": scored_by(config),
        **scores,
        **{key: trained[key] for key in ("tokens", "seconds", "weights")},
        "steps": steps,
        "flops": prepared.flops * (steps / config["budget"]["max_steps"]),
        **merge_code(trained, now),
        "libraries": libraries_of(now, trained),
        "finished": True,
    }


def _shorten(config: dict[str, Any]) -> dict[str, Any]:
    """Return the config; for a fast dev run, with that many updates, translations and validation batches."""
    some = int(config["trainer"]["fast_dev_run"])
    if not some:
        return config
    budget = config["budget"] | {"max_steps": some, "val_every": some, "bleu_sentences": some}
    trainer = config["trainer"] | {"limit_val_batches": some}
    return config | {"budget": budget, "trainer": trainer, "averaging": {"checkpoints": 0, "every": 1}}


def _count_parameters(config: dict[str, Any], vocab_size: int) -> int:
    """Count the weights of the model for as many tokens as the text has, which may be fewer than the config says."""
    learned = config | {"tokenizer": config["tokenizer"] | {"vocab_size": vocab_size}}
    return sum(parameter.numel() for parameter in build.shapes(learned).parameters())


def _same_text(run: RunDir, store: TokenStore) -> None:
    """Check that the text is the one that the run was launched with, which its directory is named for.

    Raises:
        UserError: the text has changed since.
    """
    if run.text_file.is_file() and run.text_file.read_text(encoding="utf-8").strip() != store.fingerprint:
        raise UserError(
            f"the text has changed since {run.path} was launched: put the old text back, "
            "or launch it again, which makes it another run"
        )


def main() -> None:
    """Train the run of `python -m etude.training.run RUN_DIR`, frozen by a sweep; the output is its log."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m etude.training.run RUN_DIR")
    import_from_here()
    end_on_sigterm()
    logging_to(None)
    run = RunDir(Path(sys.argv[1]))
    try:
        check_device(run)
        result = train(run)
    except Exception as error:
        sentence = explain(error)
        if sentence is None:
            raise
        sys.stderr.write(f"etude: {sentence}\n")
        sys.exit(sentence.exit_status)
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"etude: {'; '.join(['stopped', *map(str, stop.args)])}\n")
        sys.exit(stop.exit_status if isinstance(stop, StoppedBySearch) else 130)
    if divergence(result):
        sys.exit(EXIT_STATUS)


if __name__ == "__main__":
    main()
