"""`etude prepare`: download and tokenise a corpus before any run needs it."""

import sys
from typing import TYPE_CHECKING

from etude.cli.hydra_app import run_task

if TYPE_CHECKING:
    from omegaconf import DictConfig


def main(words: list[str]) -> None:
    """Make the token store of a config and describe it; with --verify, compare its files with their checksums."""

    def task(config: "DictConfig") -> None:
        from etude.config.resolve import resolve_valid
        from etude.data.cleaning import describe_source
        from etude.data.splits import describe_counts
        from etude.logs import logging_to

        valid = resolve_valid(config)
        from etude.tasks import build

        logging_to(None)
        store = build.token_store(valid)
        lines = [f"{store.path}", f"{store.vocab_size:,} subwords"]
        lines += [f"{name:6} {describe_counts(counts)}" for name, counts in store.meta["splits"].items()]
        sources = store.meta.get("sources", {}).items()
        lines += [f"train is of {source}: {describe_source(counts)}" for source, counts in sources]
        if "--verify" in words:
            store.verify()
            lines.append(f"{len(store.meta['sums'])} files, each as it was written")
        sys.stdout.write("".join(f"{line}\n" for line in lines))

    own = [word for word in words if word != "--verify"]
    run_task("prepare", "train", task, [*own, "hydra/launcher=basic"])  # étude's launcher would start training
