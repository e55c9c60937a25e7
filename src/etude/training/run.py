"""Run one experiment from its frozen config to its result: build, fit, evaluate, write `result.json`.

`etude train` calls this in its own process, a sweep as `python -m etude.training.run RUN_DIR`. A run on several devices
has a process for each: all of them train, rank 0 does the rest.
"""

from etude.training.lean_import import import_lightning

import_lightning()  # before the modules that import it

import logging
import shutil
import sys
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
from etude.runs.divergence import EXIT_STATUS, divergence
from etude.runs.environment import environment, libraries_of
from etude.runs.lock import hold_lock, hold_training
from etude.runs.own_parts import blame
from etude.runs.provenance import Code, code_of
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.tasks.metrics import check_tokenizers, scored_by
from etude.tasks.text_size import flops_to_train
from etude.trained.checkpoint import previous
from etude.trained.weights import averaged_checkpoints, final_checkpoints, final_weights, load_weights
from etude.training.build import choose_matmul_of_run, make_parts, training_module
from etude.training.divergence import Diverged, no_scores
from etude.training.loggers import finish, record
from etude.training.metrics_writers import ProgressFile
from etude.training.module import TrainingModule
from etude.training.optimizer import make_optimizer
from etude.training.processes import leave_processes
from etude.training.rehearsal import check_device, rehearse
from etude.training.schedule import check_schedule
from etude.training.score import evaluate
from etude.training.shared import make_loggers, record_shared, take_over_training
from etude.training.stopping import Stopped, end_on_sigterm
from etude.training.trainer import fit, rank

log = logging.getLogger(__name__)

_PATIENCE = 1.0  # seconds to wait for another process
_GRACE = 60.0  # seconds for a run left behind by a killed sweep to write its checkpoint


def train(run: RunDir, patience: float = _PATIENCE) -> dict[str, Any]:
    """Train, evaluate and record a frozen run; resume from its last checkpoint, if it has one.

    Args:
        run: a run with a frozen config.
        patience: seconds to wait for another process that works on the run.

    Returns:
        The content of `result.json`, which says whether the run diverged; empty where another rank wrote it.

    Raises:
        Busy: another process works on the run.
        UserError: the data is not available, the config does not fit it or the current code, or the disk is full.
        KeyboardInterrupt: Ctrl-C or a signal asked the run to stop; the same command resumes it.
    """
    if run.finished:
        return run.result()
    with parts.of_today(lambda: check(run.config())):
        if rank() > 0:
            return _train(run, first=False)
        with hold_lock(run, patience):
            several = TorchElasticEnvironment.detect()  # the other ranks wait for this one, and not for ever
            if run.finished and not several:
                return run.result()
            remove_leftovers(run.path)
            with hold_training(run, patience if several else -1):
                shared = take_over_training(run, result=not several)
                return record_shared(run, shared) if shared else _train(run, first=True)


def _train(run: RunDir, *, first: bool) -> dict[str, Any]:
    quiet_libraries()
    keep_large_blocks()
    config = _shorten(run.config())
    averaged = averaged_checkpoints(run, config)
    # Let parts refuse their values before anything is downloaded or counted.
    shapes = build.shapes(config)
    make_optimizer(config["optimizer"], shapes.named_parameters())
    callbacks = make_parts("callbacks", config["callbacks"], Callback, dirpath=run.checkpoint.parent)
    check_schedule(config)
    if config["decoding"]:
        parts.try_out(config["decoding"])
    check_tokenizers(config)
    store = build.token_store(config)
    _same_text(run, store)
    build.check_budget(config, store)
    flops = flops_to_train(config) if first else 0.0
    begun_in = read_json(run.environment_file) or {}
    begun = run.checkpoint.exists() or previous(run.checkpoint).exists()
    made = environment(config, begun_in if begun else None)  # now, as the code on disk may change before the end
    made["matmul"] = choose_matmul_of_run(config, shapes, begun_in.get("matmul"))
    if first:
        rehearse(config, store.vocab_size)
        with replacing(run.tokenizer_file) as temporary:
            shutil.copyfile(store.tokenizer.model_file, temporary)
        if begun and code_of(begun_in) is not Code.SAME:
            log.warning("this run was begun by other code than today's; stale=rerun starts it from the beginning")
        made["libraries"] = libraries_of(made, begun_in)
        write_json(run.environment_file, made)
    torch.manual_seed(config["seed"])
    transformer = build.model(config, store.vocab_size)
    module = training_module(config, transformer)
    loggers = make_loggers(run, config) if first and not config["trainer"]["fast_dev_run"] else []
    done, result = False, {}
    try:
        found = _fit_and_score(run, config, module, store, loggers, averaged, callbacks, first)
        if first:
            result = _identity(run, config, transformer, store) | found
            result["flops"] = flops * (found["steps"] / config["budget"]["max_steps"])
            result |= {key: made[key] for key in ("results_version", "own_files", "libraries")} | {"finished": True}
            record(loggers, run, result, final_checkpoints(run, config))
        done = True
    except (Stopped, KeyboardInterrupt) as stop:
        raise KeyboardInterrupt("the same command goes on from the last checkpoint") from stop
    except Exception as error:
        if explain(error) is None and (where := blame(error, config)):
            error.add_note(f"etude: {type(error).__name__}{where}: {' '.join(str(error).splitlines())}")
        raise
    finally:
        finish(loggers, exit_code=0 if done else 1)
    if first:  # last: a run that is killed before its loggers have the result is evaluated and recorded again
        run.write_result(result)
        previous(run.checkpoint).unlink(missing_ok=True)
    return result


def _shorten(config: dict[str, Any]) -> dict[str, Any]:
    """Return the config; for a fast dev run, with that many updates, translations and validation batches."""
    some = int(config["trainer"]["fast_dev_run"])
    if not some:
        return config
    budget = config["budget"] | {"max_steps": some, "val_every": some, "bleu_sentences": some}
    trainer = config["trainer"] | {"limit_val_batches": some}
    return config | {"budget": budget, "trainer": trainer, "averaging": {"checkpoints": 0, "every": 1}}


def _same_text(run: RunDir, store: TokenStore) -> None:
    """Check that the text is the one that the run was launched with, which its directory is named for.

    Raises:
        UserError: the text has changed since.
    """
    if run.text_file.is_file() and run.text_file.read_text(encoding="utf-8").strip() != store.meta["corpus"]:
        raise UserError(
            f"the text has changed since {run.path} was launched: put the old text back, "
            "or launch it again, which makes it another run"
        )


def _identity(run: RunDir, config: dict[str, Any], transformer: EncoderDecoder, store: TokenStore) -> dict[str, Any]:
    """Return the part of the result that says which run this is, of what size, and on which text."""
    return {
        "study": config["study"],
        "arm": config["arm"],
        "seed": config["seed"],
        "id": run.path.name.rpartition("-")[2],
        "parameters": sum(parameter.numel() for parameter in transformer.parameters()),
        "vocabulary": store.vocab_size,
        "store": store.path.name,
        "scored_by": scored_by(config),
    }


def _fit_and_score(
    run: RunDir,
    config: dict[str, Any],
    module: TrainingModule,
    store: TokenStore,
    loggers: list[Logger],
    averaged: dict[int, Path],
    callbacks: list[Callback],
    first: bool,
) -> dict[str, Any]:
    """Train the run and score its final weights; a run that was stopped because it diverged has no scores."""
    progress = ProgressFile(run.progress_file, config["budget"]["max_steps"])
    diverged = None
    try:
        seconds, steps, device = fit(run, config, module, store, loggers, progress, averaged, callbacks)
    except Diverged as end:
        seconds, diverged = end.seconds, end
    except Stopped:  # all processes are, at the same step
        leave_processes()
        raise
    leave_processes()
    if not first:
        return {}
    cost = {"tokens": module.tokens, "seconds": round(seconds, 1)}
    if diverged:
        way_out = "trainer.stop_when_diverged=false goes on, once the directory of this run is deleted"
        log.error("diverged: %s; %s", diverged, way_out)
        return no_scores(config["metrics"]) | cost | {"steps": diverged.step, "diverged": str(diverged)}
    model = build.model(config, store.vocab_size)
    load_weights(model, final_weights(run, config))
    progress.evaluating(steps)
    scores = evaluate(run, config, model.to(device), store)
    if why := divergence(scores):
        log.error("diverged: %s", why)
        scores["diverged"] = why
    return scores | cost | {"steps": steps}


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
        result = train(run, _GRACE)
    except Exception as error:
        sentence = explain(error)
        if sentence is None:
            raise
        sys.stderr.write(f"etude: {sentence}\n")
        sys.exit(sentence.exit_status)
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"etude: {'; '.join(['stopped', *map(str, stop.args)])}\n")
        sys.exit(130)
    if divergence(result):
        sys.exit(EXIT_STATUS)


if __name__ == "__main__":
    main()
