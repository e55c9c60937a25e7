"""Which rows meet in which batch, held against the plain rules."""

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.data.epochs import Epochs

LENGTHS = st.lists(st.tuples(st.integers(2, 30), st.integers(2, 30)), min_size=1, max_size=80)
BUDGET = {"source_tokens": 60, "target_tokens": 60, "length_noise": 2.0}


def sides(lengths: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.array(lengths, dtype=np.int64).T)


def token_batches(sources: np.ndarray, targets: np.ndarray, *, epoch: int, **given: float) -> list[np.ndarray]:
    return Epochs(sources, targets, **given).plan(epoch)


def plain_cuts(sources: list[int], targets: list[int], source_tokens: int, target_tokens: int) -> list[int]:
    """Row by row: a part ends where the next row would make it too large."""
    cuts, first = [], 0
    for place in range(len(sources)):
        rows = place - first + 1
        if (
            rows * max(sources[first : place + 1]) > source_tokens
            or rows * max(targets[first : place + 1]) > target_tokens
        ):
            cuts.append(place)
            first = place
    return cuts


def plain_batches(
    sources: np.ndarray, targets: np.ndarray, epoch: int, seed: int, noise: float, most: tuple[int, int]
) -> list[list[int]]:
    """The rules as one would write them down, with Python's own sort."""
    generator = np.random.default_rng([seed, epoch])
    shuffled = generator.permutation(len(sources)).tolist()
    told = np.floor(targets + np.random.default_rng(seed).uniform(0, noise, len(targets)))
    places = sorted(range(len(sources)), key=lambda row: (told[row], sources[row] * (-1 if told[row] % 2 else 1)))
    free = {}
    for row in shuffled:
        free.setdefault((sources[row], targets[row]), []).append(row)
    rows = [free[sources[place], targets[place]].pop(0) for place in places]
    cuts = plain_cuts([sources[row] for row in rows], [targets[row] for row in rows], *most)
    batches = [rows[first:last] for first, last in pairwise([0, *cuts, len(rows)])]
    return [batches[index] for index in generator.permutation(len(batches))]


@settings(deadline=None, max_examples=200)
@given(LENGTHS, st.integers(0, 5), st.integers(0, 5), st.floats(0, 6), st.integers(30, 200), st.integers(30, 200))
def test_the_batches_are_those_of_the_plain_rules(
    lengths: list[tuple[int, int]], seed: int, epoch: int, noise: float, source_tokens: int, target_tokens: int
) -> None:
    source, target = sides(lengths)
    budget = {"source_tokens": source_tokens, "target_tokens": target_tokens, "length_noise": noise}
    fast = token_batches(source, target, **budget, seed=seed, epoch=epoch)
    plain = plain_batches(source, target, epoch, seed, noise, (source_tokens, target_tokens))
    assert [rows.tolist() for rows in fast] == plain


def test_lengths_beyond_sixteen_bits_are_batched_by_the_same_rules() -> None:
    source, target = sides([(n * 7919 % 90_000 + 2, n * 104_729 % 80_000 + 2) for n in range(200)])
    budget = {"source_tokens": 400_000, "target_tokens": 300_000, "length_noise": 4.0}
    fast = token_batches(source, target, **budget, seed=1, epoch=1)
    assert [rows.tolist() for rows in fast] == plain_batches(source, target, 1, 1, 4.0, (400_000, 300_000))


def test_epochs_taken_in_turn_or_at_random_are_those_planned_alone() -> None:
    lengths = sides([(2 + n % 7, 2 + n % 5) for n in range(400)])
    epochs, other = Epochs(*lengths, **BUDGET, seed=1), Epochs(*lengths, **BUDGET, seed=1)
    for epoch in (0, 1, 2, 5, 3, 3, 4):
        taken, planned = epochs.take(epoch), other.plan(epoch)
        assert len(taken) == len(epochs)
        assert all((a == b).all() for a, b in zip(taken, planned, strict=True))


def test_the_next_epoch_is_planned_while_one_is_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    epochs = Epochs(*sides([(5, 5)] * 50), **BUDGET, seed=1)
    planned: list[tuple[int, bool]] = []
    real = epochs.plan

    def plan(epoch: int) -> list[np.ndarray]:
        planned.append((epoch, threading.current_thread() is threading.main_thread()))
        return real(epoch)

    monkeypatch.setattr(epochs, "plan", plan)
    for epoch in range(3):
        epochs.take(epoch)
    assert planned[:3] == [(0, True), (1, False), (2, False)]


def test_what_goes_wrong_in_the_thread_is_told_by_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    epochs = Epochs(*sides([(5, 5)] * 50), **BUDGET, seed=1)
    real = epochs.plan
    monkeypatch.setattr(epochs, "plan", lambda epoch: real(epoch) if epoch < 1 else [].pop())
    epochs.take(0)
    with pytest.raises(IndexError):
        epochs.take(1)


@settings(deadline=None, max_examples=100)
@given(LENGTHS, st.integers(0, 5), st.integers(0, 5), st.integers(30, 200), st.integers(30, 200))
def test_every_row_is_in_one_batch_and_no_batch_exceeds_its_budgets(
    lengths: list[tuple[int, int]], seed: int, epoch: int, source_tokens: int, target_tokens: int
) -> None:
    source, target = sides(lengths)
    batches = token_batches(
        source,
        target,
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        length_noise=2.0,
        seed=seed,
        epoch=epoch,
    )
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) * source[rows].max() <= source_tokens
        assert len(rows) * target[rows].max() <= target_tokens


@settings(deadline=None, max_examples=50)
@given(LENGTHS, st.integers(0, 5))
def test_an_epoch_always_has_as_many_batches(lengths: list[tuple[int, int]], epoch: int) -> None:
    first, other = (token_batches(*sides(lengths), **BUDGET, seed=1, epoch=number) for number in (0, epoch))
    assert len(first) == len(other)


def test_the_order_is_a_function_of_seed_and_epoch_and_differs_with_either() -> None:
    lengths = sides([(2 + n % 7, 2 + n % 5) for n in range(400)])

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [rows.tolist() for rows in token_batches(*lengths, **BUDGET, seed=seed, epoch=epoch)]

    assert order(1, 2) == order(1, 2)
    assert len({str(order(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9
