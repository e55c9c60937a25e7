"""`etude evaluate`: compute perplexity and metrics of a trained run."""

import sys
from typing import TYPE_CHECKING

from etude.cli.hydra_app import run_task_on_a_run

if TYPE_CHECKING:
    from omegaconf import DictConfig


def main(words: list[str]) -> None:
    """Score a trained run."""

    def task(config: "DictConfig") -> None:
        from etude.config.check import check
        from etude.config.resolve import resolve, typed_overrides
        from etude.config.schema import Evaluate

        check(config, Evaluate)
        from etude.inspect.evaluate import evaluate

        sys.stdout.write(evaluate(resolve(config), typed_overrides(config)))

    run_task_on_a_run("evaluate", task, words)
