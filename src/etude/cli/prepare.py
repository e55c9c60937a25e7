"""`etude prepare`: download a corpus and tokenise it, once, before any run needs it."""

import sys
from typing import TYPE_CHECKING, Any

from etude.cli.hydra_app import run_task

if TYPE_CHECKING:
    from omegaconf import DictConfig


def main(words: list[str]) -> None:
    """Make the token store of a config; with --verify, compare all of it with what was written."""

    def task(config: "DictConfig") -> None:
        from etude.config.check import check
        from etude.config.identity import resolve

        check(config)
        sys.stdout.write(_prepare(resolve(config), verify="--verify" in words))

    own = [word for word in words if word != "--verify"]
    run_task("prepare", "train", task, [*own, "hydra/launcher=basic"])  # the sweep's own launcher would train


def _prepare(config: dict[str, Any], *, verify: bool) -> str:
    """Make the token store and describe it, for the terminal.

    Raises:
        UserError: the corpus cannot be had or does not fit the config, or the store is damaged.
    """
    from etude.data.splits import describe_counts
    from etude.logs import logging_to
    from etude.tasks import build

    logging_to(None)
    store = build.token_store(config)
    lines = [f"{store.path}", f"{store.vocab_size:,} word pieces"]
    lines += [f"{name:6} {describe_counts(counts)}" for name, counts in store.meta["splits"].items()]
    if verify:
        store.verify()
        lines.append(f"{len(store.meta['sums'])} files, each as it was written")
    return "\n".join(lines) + "\n"
