"""`etude translate`: lines from standard input to standard output."""

import sys
from typing import TYPE_CHECKING

from etude.cli.hydra_app import run_task_on_a_run

if TYPE_CHECKING:
    from omegaconf import DictConfig


def main(words: list[str]) -> None:
    """Translate what comes on standard input."""

    def task(config: "DictConfig") -> None:
        from etude.config.check import check
        from etude.config.resolve import resolve, typed_overrides
        from etude.config.schema import Translate

        check(config, Translate)
        from etude.inspect.translate import translate

        translate(resolve(config), sys.stdin.buffer, sys.stdout, typed_overrides(config))

    run_task_on_a_run("translate", task, words)
