"""Tokenise pairs chunk by chunk: in this process, or, if the text is large, on all cores.

Chunks are returned in the order of the text, so that the result is byte-identical either way.
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
from etude.runs.cores import usable_cores

CHUNK_SIZE = 8192
"""Pairs tokenised at a time."""

MIN_PARALLEL_CHUNKS = 16
"""Fewer chunks are tokenised faster in this process than worker processes start."""

MAX_PROCESSES = 8
"""More would wait for the process that reads, and each takes memory."""

Tokens = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most tokens that a line may have, on either side, EOS not counted."""

    max_tokens: int


@dataclass(frozen=True)
class Chunk:
    """Some tokenised pairs of a split."""

    sides: tuple[tuple[Tokens, Tokens], tuple[Tokens, Tokens]]  # of source and target: concatenated tokens, and lengths
    text: list[Pair]  # of valid and test
    counts: Counter[str]  # "pairs", "cut", "blank", "dropped"


def tokenize(pairs: Iterable[Pair], name: str, tokenizer: Tokenizer, limits: Limits) -> Iterator[Chunk]:
    """Tokenise the pairs of the split `name`, in their order.

    Raises:
        UserError: a worker process is killed.
    """
    rest = iter(pairs)
    chunks = iter(lambda: list(islice(rest, CHUNK_SIZE)), [])
    first = list(islice(chunks, MIN_PARALLEL_CHUNKS))
    processes = min(usable_cores(), MAX_PROCESSES)
    if len(first) < MIN_PARALLEL_CHUNKS or processes == 1:
        return (tokenize_chunk(chunk, name, tokenizer, limits) for chunk in chain(first, chunks))
    return _tokenize_in_processes(chain(first, chunks), name, tokenizer.model_file, limits, processes)


def tokenize_chunk(pairs: list[Pair], name: str, tokenizer: Tokenizer, limits: Limits, threads: int = -1) -> Chunk:
    """Tokenise some pairs of the split `name`; `splits.py` documents which are left out or cut."""
    encoded = [tokenizer.encode_all(lines, threads) for lines in zip(*pairs, strict=True)]
    sides: list[list[list[int]]] = [[], []]
    text: list[Pair] = []
    counts: Counter[str] = Counter()
    for pair, source, target in zip(pairs, *encoded, strict=True):
        outcome = _classify(name, max(len(source), len(target)), min(len(source), len(target)), limits)
        counts[outcome] += 1
        if outcome in ("pairs", "cut"):
            sides[0].append([*source[: limits.max_tokens], EOS])
            sides[1].append([*target, EOS][: limits.max_tokens + 1])
            if name != "train":
                text.append(pair)
    return Chunk((_flatten(sides[0]), _flatten(sides[1])), text, counts)


def _tokenize_in_processes(
    chunks: Iterable[list[Pair]], name: str, model_file: Path, limits: Limits, processes: int
) -> Iterator[Chunk]:
    """Tokenise chunks in worker processes, at most two chunks per process ahead of the consumer."""
    context = get_context("spawn")  # a fork would copy the locks of other threads, locked or not
    pending: deque[Future[Chunk]] = deque()
    try:
        with ProcessPoolExecutor(processes, context, _init_worker, (model_file,)) as pool:
            for chunk in chunks:
                pending.append(_submit(pool, chunk, name, limits))
                if len(pending) > 2 * processes:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process that helped to tokenise the text was killed (is there memory for it?): start again"
        ) from error


def _submit(pool: ProcessPoolExecutor, chunk: list[Pair], name: str, limits: Limits) -> Future[Chunk]:
    try:
        return pool.submit(_tokenize_in_worker, chunk, name, limits)
    except (OSError, ValueError) as error:  # the handle of a process that was killed just now, or its number, -1
        raise BrokenProcessPool(str(error)) from error


_tokenizer: Tokenizer
"""The tokenizer of a worker process."""


def _init_worker(model_file: Path) -> None:
    global _tokenizer
    _tokenizer = Tokenizer(model_file)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent ends, even if that is killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _tokenize_in_worker(pairs: list[Pair], name: str, limits: Limits) -> Chunk:
    return tokenize_chunk(pairs, name, _tokenizer, limits, threads=1)


def _flatten(lines: list[list[int]]) -> tuple[Tokens, Tokens]:
    lengths = np.fromiter(map(len, lines), np.int32, len(lines))
    return np.fromiter(chain.from_iterable(lines), np.int32, int(lengths.sum())), lengths


def _classify(name: str, longest: int, shortest: int, limits: Limits) -> str:
    """Return the count that a pair belongs to, given the tokens of its longer and shorter side."""
    if shortest == 0:
        return "blank"
    if longest <= limits.max_tokens:
        return "pairs"
    return "dropped" if name == "train" else "cut"
