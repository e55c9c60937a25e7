"""Whether a corpus a hundred times as large costs a step more, and how long its store takes to open.

    python benchmarks/corpora.py [--pairs 10000 1000000] [--rounds 5]

The texts are of the grammar's sentences, again and again, each with a number behind it. A store is opened by its
description alone; the training text is held against its checksums when it is first read.
"""

import argparse
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path

from turns import rates_in_turns

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.grammar import GrammarCorpus
from etude.data.store import TokenStore
from etude.tasks import build

DISTINCT = 10_000
TIMES = 5


def write_text(file: Path, pairs: int) -> list[str]:
    """Write a text of so many pairs, and say how a config asks for it."""
    corpus = GrammarCorpus(seed=1, train_pairs=DISTINCT, valid_pairs=1, test_pairs=1, vocab_size=2000)
    some = list(islice(corpus.pairs("train"), DISTINCT))
    with file.open("w", encoding="utf-8") as text:
        for number in range(pairs):
            source, target = some[number % DISTINCT]
            text.write(f"{source} {number}\t{target} {number}\n")
    learned = ["data.vocab_size=2000", "tokenizer.input_sentence_size=20000"]
    return ["data=files", f"data.tsv={file}", *learned, f"cache_dir={file.parent}"]


def opening(path: Path) -> tuple[float, float]:
    """Seconds in which a store is opened, and in which its training text is read the first time."""
    started = time.perf_counter()
    store = TokenStore(path)
    opened = time.perf_counter()
    store.split("train")
    return opened - started, time.perf_counter() - opened


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100, help="of a round")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = {f"{pairs:,} pairs": write_text(Path(folder) / f"{pairs}.tsv", pairs) for pairs in asked.pairs}
        for name, overrides in texts.items():
            store = build.token_store(resolve(compose(overrides)))
            size = sum(store.meta["files"].values())
            taken = zip(*(opening(store.path) for _ in range(TIMES)), strict=True)
            opened, checked = (f"{1000 * statistics.median(seconds):.1f} ms" for seconds in taken)
            print(f"{name}, {size / 1e6:.0f} MB: opened in {opened}, checked in {checked}", flush=True)
        bare = {name: {"overrides": words, "steps": asked.steps} for name, words in texts.items()}
        peers = {name: ("pipeline:Bare", options) for name, options in bare.items()}
        rates = rates_in_turns(peers, asked.rounds, threads=1)
    first = next(iter(rates.values()))
    for name, found in rates.items():
        ratios = [mine / other for other, mine in zip(found, first, strict=True)]
        told = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        print(f"{name}: {1000 / statistics.median(found):.2f} ms a step, {told} of the smallest")


if __name__ == "__main__":
    main()
