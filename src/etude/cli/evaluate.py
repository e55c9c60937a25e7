"""`etude evaluate`: compute perplexity and metrics of a trained run."""

import sys
from typing import Any

from etude.cli.hydra_app import run_task_on_a_run


def main(words: list[str]) -> None:
    """Score a trained run."""

    def task(config: dict[str, Any], typed: list[str]) -> None:
        from etude.inspect.evaluate import evaluate  # imports torch, so only after the config is checked

        sys.stdout.write(evaluate(config, typed))

    run_task_on_a_run("evaluate", task, words)
