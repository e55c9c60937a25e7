"""`etude prepare`: download and tokenise a corpus before any run needs it."""

import sys
from typing import TYPE_CHECKING

from etude.cli.hydra_app import run_task

if TYPE_CHECKING:
    from omegaconf import DictConfig


HELP = """usage: etude prepare [data=NAME] [key=value ...] [--verify]

Downloads a corpus, learns its subwords and tokenises it, before a run needs it;
`etude train` and `etude sweep` do the same when they begin. It prints where the
tokens are kept (cache_dir), how many pairs were used and left out, what share of
the tokens is not in the vocabulary, the first pair as it was read, and what makes
BLEU impossible or not comparable. Keys are those of `etude train`.

  etude prepare data=multi30k_en_de
  etude prepare data=files data.source=my.en data.target=my.de

  --verify   compare the files with the checksums taken when they were written
"""


def main(words: list[str]) -> None:
    """Make the token store of a config and describe it; with --verify, compare its files with their checksums."""

    if {"-h", "--help"} & set(words):
        sys.stdout.write(HELP)
        return

    def task(config: "DictConfig") -> None:
        from etude.config.resolve import resolve_valid
        from etude.data.store import describe
        from etude.data.wmt import describe_source
        from etude.logs import logging_to

        valid = resolve_valid(config)
        from etude.tasks import build
        from etude.tasks.metrics import check_tokenizers
        from etude.tasks.plain_text import describe_text

        logging_to(None)
        check_tokenizers(valid)
        store = build.token_store(valid)
        lines = [f"{store.path}", f"{store.vocab_size:,} subwords"]
        lines += [f"{name:6} {describe(counts)}" for name, counts in store.meta["splits"].items()]
        sources = store.meta.get("sources", {}).items()
        lines += [f"train is of {source}: {describe_source(counts)}" for source, counts in sources]
        if first := store.meta.get("first_pair"):  # stores of earlier versions have none
            lines.append(f"train begins with {first[0]!r} -> {first[1]!r}")
        lines += describe_text(valid, store)
        if "--verify" in words:
            store.verify()
            lines.append(f"{len(store.meta['sums'])} files, each as it was written")
        sys.stdout.write("".join(f"{line}\n" for line in lines))

    own = [word for word in words if word != "--verify"]
    run_task("prepare", "train", task, [*own, "hydra/launcher=basic"])  # étude's launcher would start training
