"""Pairs turned into tokens, a chunk at a time: in this process, or where the text is large on all cores.

The chunks come back in the order of the text, so that whoever makes them, the result is the same to the byte.
"""

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

import numpy as np
import numpy.typing as npt

from etude.data.corpus import Pair
from etude.data.tokenizer import EOS, Tokenizer
from etude.errors import UserError

CHUNK = 8192
"""Pairs tokenised at a time."""

ALONE = 16
"""Chunks that are sooner tokenised here than processes are started."""

MOST_PROCESSES = 8
"""More would wait for the one that reads, and each takes memory."""

Tokens = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many tokens a line may have, on either side, EOS not counted."""

    max_tokens: int


@dataclass(frozen=True)
class Chunk:
    """Some pairs of a split as numbers."""

    sides: tuple[tuple[Tokens, Tokens], tuple[Tokens, Tokens]]  # of source and target: tokens end to end, and lengths
    text: list[Pair]  # of valid and test
    counts: Counter[str]  # "pairs", "cut", "blank", "dropped"


def tokenize(pairs: Iterable[Pair], name: str, tokenizer: Tokenizer, limits: Limits) -> Iterator[Chunk]:
    """The pairs of the split `name` as numbers, in their order.

    Raises:
        UserError: a process that helps is killed.
    """
    rest = iter(pairs)
    chunks = iter(lambda: list(islice(rest, CHUNK)), [])
    first = list(islice(chunks, ALONE))
    processes = min(_cores(), MOST_PROCESSES)
    if len(first) < ALONE or processes == 1:
        return (tokenize_chunk(chunk, name, tokenizer, limits) for chunk in chain(first, chunks))
    return _spread(chain(first, chunks), name, tokenizer.model_file, limits, processes)


def tokenize_chunk(pairs: list[Pair], name: str, tokenizer: Tokenizer, limits: Limits, threads: int = -1) -> Chunk:
    """Some pairs of the split `name` as numbers, those left out that `splits.py` says."""
    encoded = [tokenizer.encode_all(lines, threads) for lines in zip(*pairs, strict=True)]
    sides: list[list[list[int]]] = [[], []]
    text: list[Pair] = []
    counts: Counter[str] = Counter()
    for pair, source, target in zip(pairs, *encoded, strict=True):
        fate = _fate(name, max(len(source), len(target)), min(len(source), len(target)), limits)
        counts[fate] += 1
        if fate in ("pairs", "cut"):
            sides[0].append([*source[: limits.max_tokens], EOS])
            sides[1].append([*target, EOS][: limits.max_tokens + 1])
            if name != "train":
                text.append(pair)
    return Chunk((_flatten(sides[0]), _flatten(sides[1])), text, counts)


def _spread(
    chunks: Iterable[list[Pair]], name: str, model_file: Path, limits: Limits, processes: int
) -> Iterator[Chunk]:
    """The same by several processes, none of which is far ahead of what has been taken."""
    context = get_context("spawn")  # a fork would copy the locks of other threads, held or not
    waiting: deque[Future[Chunk]] = deque()
    try:
        with ProcessPoolExecutor(processes, context, _load, (model_file,)) as pool:
            for chunk in chunks:
                waiting.append(_submit(pool, chunk, name, limits))
                if len(waiting) > 2 * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process that helped to tokenise the text was killed (is there memory for it?): start again"
        ) from error


def _submit(pool: ProcessPoolExecutor, chunk: list[Pair], name: str, limits: Limits) -> Future[Chunk]:
    try:
        return pool.submit(_work, chunk, name, limits)
    except (OSError, ValueError) as error:  # the handle of a process that was killed just now, or its number, -1
        raise BrokenProcessPool(str(error)) from error


_tokenizer: Tokenizer
"""Of a process that helps."""


def _load(model_file: Path) -> None:
    global _tokenizer
    _tokenizer = Tokenizer(model_file)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process with the one that it helps: if that is killed, nobody else would tell it to."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(pairs: list[Pair], name: str, limits: Limits) -> Chunk:
    return tokenize_chunk(pairs, name, _tokenizer, limits, threads=1)


def _flatten(lines: list[list[int]]) -> tuple[Tokens, Tokens]:
    lengths = np.fromiter(map(len, lines), np.int32, len(lines))
    return np.fromiter(chain.from_iterable(lines), np.int32, int(lengths.sum())), lengths


def _fate(name: str, longest: int, shortest: int, limits: Limits) -> str:
    """Under which count a pair goes whose sides have so many tokens."""
    if shortest == 0:
        return "blank"
    if longest <= limits.max_tokens:
        return "pairs"
    return "dropped" if name == "train" else "cut"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
