"""Run Hydra's command line, with its overrides and flags, for a verb; errors are reported by étude."""

import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from etude.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig

_FLAGS = {  # of Hydra's command line
    *("help", "hydra-help", "version", "cfg", "resolve", "package", "run", "multirun", "shell-completion", "info"),
    *("config-path", "config-name", "config-dir"),
}
Task = Callable[["DictConfig"], Any]
TaskOnARun = Callable[[dict[str, Any], list[str]], None]  # of the resolved config and the typed overrides


def run_task(verb: str, config_name: str, task: Task, words: list[str]) -> None:
    """Compose the config from `words` and call `task` with it, as Hydra does: once, or with -m for every combination.

    Args:
        verb: the verb, which Hydra shows after the program's name; may be empty.
        config_name: the primary config in `conf/`.
        task: called with the config, including its `hydra` node; its return value goes to Hydra's sweepers and
            callbacks.
        words: the words after the verb.

    Raises:
        Exception: the first that `task` raised.
    """
    import hydra
    from omegaconf import OmegaConf

    from etude.config.explain import explain_own_data
    from etude.config.quoting import make_readable
    from etude.config.resolvers import register
    from etude.paths import shipped

    _refuse_options(verb, words)
    register()
    os.environ["HYDRA_FULL_ERROR"] = "1"
    overrides = [word for word in words if word[:1] != "-" and ("=" in word or word[:1] == "~")]
    flags = [word for word in words if word not in overrides]  # Hydra wants them, and what they are given, first
    flags = [
        "--info=all" if word in ("-i", "--info") and after[:1] in "-" else word
        for word, after in pairwise([*flags, ""])
    ]
    if any(flag.startswith("--info") for flag in flags):
        logging.raiseExceptions = False  # Hydra logs it, and a line that nobody reads, as behind `| head`, is no error
    sys.argv = [f"etude {verb}".strip(), *flags, *make_readable(overrides)]
    failed: list[Exception] = []

    def job(config: "DictConfig") -> Any:
        try:
            return task(_with_hydra_node(config))
        except Exception as error:  # Hydra would print a message of its own before raising it again
            failed.append(explain_own_data(error, OmegaConf.to_container(config)) or error)  # type: ignore[arg-type]

    hydra.main(config_path=str(shipped("conf")), config_name=config_name, version_base="1.3")(job)()
    if failed:
        raise failed[0]


def _refuse_options(verb: str, words: Sequence[str]) -> None:
    """Refuse words that Hydra would answer with its usage, or with a sentence that does not name them.

    Raises:
        UserError: a word is one of them.
    """
    from etude.config.explain import refuse_number

    for word, after in pairwise([*words, ""]):
        refuse_number(word)
        name, equals, value = {"-c": "cfg", "-p": "package"}.get(word, word).removeprefix("--").partition("=")
        value = value if equals else after
        if word.startswith("--") and (name not in _FLAGS or word.startswith("--run=")):
            value = value if equals or (value and value[0] != "-" and "=" not in value) else "..."
            raise UserError(f"{word} is not an option of `etude {verb}`: write keys without dashes, {name}={value}")
        if name == "cfg" and word != name and value not in ("job", "hydra", "all"):
            raise UserError("--cfg shows the config: say --cfg job, --cfg hydra or --cfg all")
        if name == "package" and word != name and not any(re.match("-c$|--cfg(=|$)", one) for one in words):
            raise UserError("--package goes with --cfg, as in --cfg job --package model: leave it out")


def run_task_on_a_run(verb: str, task: TaskOnARun, words: list[str]) -> None:
    """Call `run_task` for a verb that works on a trained run and has a config of its own; print that as its help.

    The config is checked first: its schema has the name of the verb.
    """

    def check_first(config: "DictConfig") -> None:
        from etude.config import schema
        from etude.config.check import check
        from etude.config.resolve import resolve, typed_overrides

        plain = resolve(config)
        check(plain, getattr(schema, verb.capitalize()))
        task(plain, typed_overrides(config))

    if {"-h", "--help"} & set(words):
        sys.stdout.write(_help(verb))
    else:
        run_task(verb, verb, check_first, words)


def _help(verb: str) -> str:
    """Return the verb's config file with its comments, without Hydra's own settings."""
    from etude.paths import find_file

    title, *lines = find_file("conf", f"{verb}.yaml").read_text(encoding="utf-8").splitlines()
    own = [line.removeprefix("  - ") for line in lines if not re.match(r"defaults|hydra|  - (_self_|override)", line)]
    return "\n".join([title.removeprefix("# "), "", *filter(None, own), ""])


def _with_hydra_node(config: "DictConfig") -> "DictConfig":
    """Add the `hydra` node to the config, which Hydra removes inside a job."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import open_dict

    with open_dict(config):
        config.hydra = HydraConfig.get()
    return config
