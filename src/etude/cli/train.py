"""`etude train`: train and evaluate one model; with -m, launch many. Slow imports happen only when needed."""

import os
import shlex
import sys
import traceback
from contextlib import suppress
from textwrap import fill
from typing import TYPE_CHECKING, Any

from etude.cli.hydra_app import run_task
from etude.errors import UserError
from etude.store.divergence import EXIT_STATUS, divergence
from etude.study.study import study_names

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from etude.store.run_dir import RunDir


USAGE = """usage: etude train [-m] [group=NAME ...] [key=value ...] [--cfg job] [--info]

Trains and evaluates one model. Type the same again: an unfinished run resumes,
a finished one is kept.

  etude train model.heads=2 scale=pocket
  etude train experiment=table3/A1 seed=2
  etude train -m 'experiment=glob(table3/A*)' seed=1,2,3

  -m            a multirun: all combinations of values with commas between them
  --cfg job     print the config, with every key, and train nothing
  --info        print how Hydra composed it

Config groups and their options:

"""


def main(words: list[str]) -> None:
    """Train and evaluate one model; with -m, launch many."""
    if {"-h", "--help"} & set(words):
        sys.stdout.write(f"{USAGE}{_list_groups()}\n")
        return
    diverged = []

    def task(config: "DictConfig") -> float:
        from etude.config.freeze import freeze
        from etude.store.objective import objective
        from etude.store.run_state import write_stop

        run = freeze(config)
        write_stop(run, None)  # what a search has paused or pruned goes on to its end
        if run.finished:
            from etude.config.resolve import resolve
            from etude.store.provenance import notes_on_code
            from etude.tasks.metrics import add_missing_metrics

            before = run.result()
            result = add_missing_metrics(run, resolve(config))
            by_other_code = notes_on_code([result])
            way_out = f"; to evaluate it again, delete {run.path}, and to train it again {run.own_training.path} too"
            again = "" if by_other_code else way_out
            changed = result != before
            done = "only scored, by the metrics that it lacked" if changed else "nothing to do"
            notes = [*by_other_code, *_notes_on_wandb(run, config, changed=changed)]
            sys.stderr.write("\n".join([f"already finished, {done}{again}", *notes, ""]))
            if os.environ.get("WANDB_SWEEP_ID"):  # W&B's agent needs the result of a skipped run, too
                from etude.training.loggers import publish

                publish(run)
        else:
            result = _train(run, config)
        sys.stdout.write(
            f"{run.path}\n"
            f"parameters {result['parameters']:,}  steps {result['steps']:,}  training {result['seconds']:.0f} s\n"
        )
        if why := divergence(result):
            sys.stdout.write(f"diverged: {why}\n")
            diverged.append(run)
            return objective(result, config)
        from etude.tasks.metrics import format_scores

        sys.stdout.write(format_scores("test", result["test"]))
        return objective(result, config)

    run_task("train", "train", task, words)
    if diverged:
        sys.exit(EXIT_STATUS)


def _list_groups() -> str:
    """List every config group with its options, and the studies whose arms are those of `experiment`."""
    from etude.config.groups import group_names, options

    found = {group: options(group) for group in group_names() if not group.startswith("hydra")}
    found["experiment"] = [f"{study}/ARM" for study in study_names()]
    lines = (f"{group:23} {', '.join(names)}" for group, names in sorted(found.items()) if names)
    return "\n".join(fill(line, 80, initial_indent="  ", subsequent_indent=" " * 26) for line in lines)


def _notes_on_wandb(run: "RunDir", config: "DictConfig", *, changed: bool) -> list[str]:
    """If W&B is asked for and lacks the finished run, name the command that sends it; say if scores were added."""
    from etude.store.wandb_id import is_kept_back
    from etude.study.study import value_at

    if value_at(config, "logger.wandb.mode") != "online":
        return []
    kept = f"it was logged offline; this sends it: wandb sync {shlex.quote(str(run.path / 'wandb'))}"
    return [kept] * is_kept_back(run) + ["W&B shows it as it ended, without the scores that were added now"] * changed


def _train(run: "RunDir", config: "DictConfig") -> dict[str, Any]:
    """Train in this process; with several devices, in one process for each."""
    from etude.logs import logging_to

    if config.trainer.devices > 1:
        from omegaconf import OmegaConf

        from etude.launch.slots import train_on_several

        logging_to(None)
        return train_on_several(run, OmegaConf.to_container(config.hydra.launcher))  # type: ignore[arg-type]
    from etude.config.explain import explain
    from etude.config.freeze import remove
    from etude.training.before import check_device
    from etude.training.run import train
    from etude.training.stopping import end_on_sigterm

    end_on_sigterm()
    try:
        check_device(run)
    except UserError:
        if not (run.log_file.exists() or run.environment_file.exists()):  # nothing has been done for it
            with suppress(UserError):  # somebody is about to
                for directory in (run.own_training, run):
                    remove(directory)
        raise
    logging_to(run.log_file)
    try:
        return train(run)
    except Exception as error:  # written to the log, where `etude status` reads it
        message = f"etude: {mistake}\n" if (mistake := explain(error)) else traceback.format_exc()
        with suppress(OSError), run.log_file.open("a", encoding="utf-8") as log:
            log.write(message)
        raise
