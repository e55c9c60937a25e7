"""The verbs that take Hydra's command line: what stands behind them is its overrides and its flags.

Nothing heavy is imported before the config has been checked.
"""

import os
import re
import sys
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from etude.divergence import EXIT_STATUS, divergence

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from etude.rundir import RunDir


def _on_a_run(verb: str, task: "Callable[[DictConfig], None]", words: list[str]) -> None:
    """A verb that is asked of a trained run; what it takes, its config file says."""
    if {"-h", "--help"} & set(words):
        sys.stdout.write(_help(verb))
    else:
        _hydra(verb, verb, task, words)


def _help(verb: str) -> str:
    """The verb's own config file, comments and all, but for what is Hydra's."""
    from etude.paths import shipped

    title, *lines = (shipped("conf") / f"{verb}.yaml").read_text(encoding="utf-8").splitlines()
    own = [line.removeprefix("  - ") for line in lines if not re.match(r"defaults|hydra|  - (_self_|override)", line)]
    return "\n".join([title.removeprefix("# "), "", *filter(None, own), ""])


def _hydra(verb: str, config_name: str, task: "Callable[[DictConfig], None]", words: list[str]) -> None:
    """Hydra's own command line, its errors left to us."""
    import hydra

    from etude.config.quoting import readable
    from etude.config.resolvers import register
    from etude.paths import shipped

    register()
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = [f"etude {verb}", *readable(words)]
    failed: list[Exception] = []

    def job(config: "DictConfig") -> None:
        try:
            task(config)
        except Exception as error:  # Hydra would print a line of its own before passing it on
            failed.append(error)

    hydra.main(config_path=str(shipped("conf")), config_name=config_name, version_base="1.3")(job)()
    if failed:
        raise failed[0]


def _with_hydra_node(config: "DictConfig") -> "DictConfig":
    """The config as composed: inside a job Hydra hides its own node."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import open_dict

    with open_dict(config):
        config.hydra = HydraConfig.get()
    return config


def train(words: list[str]) -> None:
    """Train and evaluate one model; with -m, launch many."""
    diverged = []

    def task(config: "DictConfig") -> None:
        from etude.config.identity import freeze

        composed = _with_hydra_node(config)
        run = freeze(composed)
        if run.finished:
            result = run.result()
            finished = "already finished, nothing to do; to compute it again, delete its directory"
            sys.stderr.write("\n".join([finished, *_notes_on_code(run, result), ""]))
            if "WANDB_SWEEP_ID" in os.environ:  # the agent that asked for it learns nothing from a skipped run
                from etude.training.loggers import publish

                publish(run)
        else:
            result = _trained(run, composed)
        test = result["test"]
        sys.stdout.write(
            f"{run.path}\n"
            f"parameters {result['parameters']:,}  steps {result['steps']:,}  training {result['seconds']:.0f} s\n"
        )
        if why := divergence(result):
            sys.stdout.write(f"diverged: {why}\n")
            diverged.append(run)
            return
        sys.stdout.write(
            f"test perplexity {test['perplexity']:.2f}  BLEU {test['bleu']:.2f}  ({test['signature']})\n"
            f"test BLEU by the paper's recipe {test['paper_bleu']:.2f}  ({test['paper_signature']})\n"
        )

    _hydra("train", "train", task, words)
    if diverged:
        sys.exit(EXIT_STATUS)


def _notes_on_code(run: "RunDir", result: dict[str, Any]) -> list[str]:
    from etude.config.stale import code_of, notes_on_code

    return notes_on_code([code_of(run, result)])


def _trained(run: "RunDir", config: "DictConfig") -> dict[str, Any]:
    """Train in this process, or where a run has several devices, in one for each."""
    from etude.logs import logging_to

    if config.trainer.devices > 1:
        from omegaconf import OmegaConf

        from etude.sweep.foreground import train_on_several

        logging_to(None)
        return train_on_several(run, OmegaConf.to_container(config.hydra.launcher))  # type: ignore[arg-type]
    from etude.config.explain import explain
    from etude.train import train
    from etude.training.stopping import end_on_sigterm

    end_on_sigterm()
    logging_to(run.log_file)
    try:
        return train(run)
    except Exception as error:  # whoever asks for the status later reads it there
        told = f"etude: {mistake}\n" if (mistake := explain(error)) else traceback.format_exc()
        with suppress(OSError), run.log_file.open("a", encoding="utf-8") as log:
            log.write(told)
        raise


def prepare(words: list[str]) -> None:
    """Download and tokenise a corpus."""

    def task(config: "DictConfig") -> None:
        from etude.config.check import check
        from etude.config.identity import resolved
        from etude.prepare import prepare

        check(_with_hydra_node(config))
        sys.stdout.write(prepare(resolved(config), verify="--verify" in words))

    own = [word for word in words if word != "--verify"]
    _hydra("prepare", "train", task, [*own, "hydra/launcher=basic"])  # the sweep's own launcher would train


def evaluate(words: list[str]) -> None:
    """Score a trained run."""

    def task(config: "DictConfig") -> None:
        from etude.config.check import check
        from etude.config.plain import resolved, typed
        from etude.config.schema import Evaluate

        check(_with_hydra_node(config), Evaluate)
        from etude.evaluate import evaluate

        sys.stdout.write(evaluate(resolved(config), typed(config)))

    _on_a_run("evaluate", task, words)


def analyze(words: list[str]) -> None:
    """Take a trained run apart."""

    def task(config: "DictConfig") -> None:
        from etude.config.check import check
        from etude.config.identity import resolved
        from etude.config.schema import Analyze

        check(_with_hydra_node(config), Analyze)
        from etude.analyze.command import analyze

        analyze(resolved(config), as_json="--json" in words)

    _on_a_run("analyze", task, [word for word in words if word != "--json"])


def translate(words: list[str]) -> None:
    """Translate what comes on stdin."""

    def task(config: "DictConfig") -> None:
        from etude.config.check import check
        from etude.config.plain import resolved, typed
        from etude.config.schema import Translate

        check(_with_hydra_node(config), Translate)
        from etude.translate import translate

        translate(resolved(config), sys.stdin.buffer, sys.stdout, typed(config))

    _on_a_run("translate", task, words)


def complete(words: list[str], verbs: Collection[str]) -> None:
    """Tab completion: Hydra completes what stands behind the verb, with the verb taken out of the line."""
    line, point = os.environ.get("COMP_LINE", ""), int(os.environ.get("COMP_POINT", "0") or 0)
    program, _, rest = line.partition(" ")
    verb, space, behind = rest.lstrip().partition(" ")
    if "query" in "".join(words) and not space:
        sys.stdout.write("\n".join(name for name in verbs if name.startswith(verb)))
        return
    os.environ["COMP_LINE"] = f"{program} {behind}"
    os.environ["COMP_POINT"] = str(max(0, point - len(verb) - 1))
    config_name = verb if verb in ("evaluate", "analyze", "translate") else "train"
    _hydra(verb or "train", config_name, lambda config: None, words)
