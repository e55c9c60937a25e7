"""Hydra's own command line behind a verb: its overrides and its flags, with its errors left to us."""

import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig

Task = Callable[["DictConfig"], Any]


def run_task(verb: str, config_name: str, task: Task, words: list[str]) -> None:
    """Compose the config of `words` and hand it to `task`, as Hydra does: once, or with -m for every combination.

    Args:
        verb: what the program calls itself, behind its name; empty for the program alone.
        config_name: the primary config in `conf/`.
        task: what is done with a config that holds Hydra's own node; what it returns, Hydra's sweepers and callbacks
            are told.
        words: behind the verb.

    Raises:
        Exception: the first that `task` raised.
    """
    import hydra

    from etude.config.quoting import make_readable
    from etude.config.resolvers import register
    from etude.paths import shipped

    register()
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = [f"etude {verb}".strip(), *make_readable(words)]
    failed: list[Exception] = []

    def job(config: "DictConfig") -> Any:
        try:
            return task(_with_hydra_node(config))
        except Exception as error:  # Hydra would print a line of its own before passing it on
            failed.append(error)

    hydra.main(config_path=str(shipped("conf")), config_name=config_name, version_base="1.3")(job)()
    if failed:
        raise failed[0]


def run_task_on_a_run(verb: str, task: Task, words: list[str]) -> None:
    """The same for a verb that is asked of a trained run; its help is its own config file."""
    if {"-h", "--help"} & set(words):
        sys.stdout.write(_help(verb))
    else:
        run_task(verb, verb, task, words)


def _help(verb: str) -> str:
    """The verb's own config file, comments and all, but for what is Hydra's."""
    from etude.paths import find_file

    title, *lines = find_file("conf", f"{verb}.yaml").read_text(encoding="utf-8").splitlines()
    own = [line.removeprefix("  - ") for line in lines if not re.match(r"defaults|hydra|  - (_self_|override)", line)]
    return "\n".join([title.removeprefix("# "), "", *filter(None, own), ""])


def _with_hydra_node(config: "DictConfig") -> "DictConfig":
    """The config as composed: inside a job Hydra hides its own node."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import open_dict

    with open_dict(config):
        config.hydra = HydraConfig.get()
    return config
