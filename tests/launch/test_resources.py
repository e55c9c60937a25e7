"""Whoever asks in whatever order: nothing is handed out twice, and everybody has a turn."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.launch.resources import Need, Slot, Slots

ids = st.lists(st.sampled_from(["0", "1", "2", "GPU-3", "MIG-4"]), unique=True, max_size=4)
accelerators = st.sampled_from(["auto", "cpu", "gpu", "cuda", "mps"])


@given(
    gpus=ids,
    runs_per_gpu=st.integers(1, 3),
    workers=st.integers(1, 4),
    wanted=st.lists(st.builds(Need, st.integers(1, 5), accelerators), max_size=25),
    data=st.data(),
)
def test_every_run_that_fits_gets_what_it_asks_for_in_its_turn_and_nothing_is_held_twice(
    gpus: list[str], runs_per_gpu: int, workers: int, wanted: list[Need], data: st.DataObject
) -> None:
    slots = Slots(gpus=gpus, runs_per_gpu=runs_per_gpu, workers=workers, cores=8)
    needs = dict(enumerate(need for need in wanted if slots.refusal(need) is None))
    held: dict[int, Slot] = {}
    started: list[int] = []
    while needs or held:
        waiting = list(needs)
        admitted = slots.admit([needs[run] for run in waiting])
        for place, slot in admitted.items():
            run = waiting[place]
            check(needs.pop(run), slot, gpus, runs_per_gpu)
            held[run] = slot
            started.append(run)
        shares = Counter(gpu for slot in held.values() for gpu in slot.gpus for _ in range(slot.shares))
        assert all(shares[gpu] <= runs_per_gpu for gpu in gpus)
        assert sum(slot.workers for slot in held.values()) <= workers
        for need in first_of_each_kind(list(needs.values()), gpus):
            room = sum(runs_per_gpu - shares[gpu] >= (1 if need.devices == 1 else runs_per_gpu) for gpu in gpus)
            free = workers - sum(slot.workers for slot in held.values())
            assert (room if on_gpu(need, gpus) else free) < need.devices, "it waits, and there is room for it"
        assert held, "nobody runs, and somebody waits"
        slots.give_back(held.pop(data.draw(st.sampled_from(sorted(held)))))
    for kind in (True, False):
        turns = [run for run in started if on_gpu(dict(enumerate(fitting(wanted, slots)))[run], gpus) is kind]
        assert turns == sorted(turns)
    everything = [Need(1, "auto")] * (len(gpus) * runs_per_gpu) + [Need(1, "cpu")] * workers
    assert slots.hold_all(everything), "not all was given back"


def check(need: Need, slot: Slot, gpus: list[str], runs_per_gpu: int) -> None:
    """What a run got is what it asked for."""
    if on_gpu(need, gpus):
        assert slot.workers == 0
        assert len(slot.gpus) == len(set(slot.gpus)) == need.devices
        assert set(slot.gpus) <= set(gpus)
        assert slot.shares == (1 if need.devices == 1 else runs_per_gpu)
    else:
        assert (slot.gpus, slot.workers) == ((), need.devices)
    assert slot.threads >= 1


def on_gpu(need: Need, gpus: list[str]) -> bool:
    return bool(gpus) and need.accelerator in ("auto", "gpu", "cuda")


def fitting(wanted: list[Need], slots: Slots) -> list[Need]:
    return [need for need in wanted if slots.refusal(need) is None]


def first_of_each_kind(needs: list[Need], gpus: list[str]) -> list[Need]:
    return [*{on_gpu(need, gpus): need for need in reversed(needs)}.values()]


def test_runs_that_share_are_spread_over_the_gpus() -> None:
    slots = Slots(gpus=["0", "1"], runs_per_gpu=2, cores=8)
    admitted = slots.admit([Need()] * 5)
    assert [slot.gpus for slot in admitted.values()] == [("0",), ("1",), ("0",), ("1",)]


def test_a_run_on_several_gpus_has_them_for_itself_and_is_not_overtaken() -> None:
    slots = Slots(gpus=["0", "1"], runs_per_gpu=2, workers=1, cores=8)
    first = slots.admit([Need()])[0]
    assert list(slots.admit([Need(2), Need(1), Need(1, "cpu")])) == [2], "only what wants no GPU goes past it"
    slots.give_back(first)
    assert slots.admit([Need(2), Need(1)])[0].gpus == ("0", "1")


@pytest.mark.parametrize(
    ("need", "threads"), [(Need(1), 3), (Need(2), 6), (Need(1, "cpu"), 1)], ids=["a share", "two whole", "the CPU"]
)
def test_threads_are_an_equal_share_of_the_cores_on_gpus_and_one_on_the_cpu(need: Need, threads: int) -> None:
    (slot,) = Slots(gpus=["0", "1"], runs_per_gpu=2, cores=12).admit([need]).values()
    assert slot.threads == threads


def test_a_gpu_run_has_a_thread_where_cores_are_few_and_as_many_as_are_asked_for() -> None:
    assert Slots(gpus=["0", "1", "2"], cores=2).admit([Need()])[0].threads == 1
    assert Slots(gpus=["0"], cores=2, threads=7).admit([Need()])[0].threads == 7


def test_a_slot_is_given_back_once() -> None:
    slots = Slots(workers=2)
    slot = slots.admit([Need()])[0]
    slots.give_back(slot)
    with pytest.raises(KeyError):
        slots.give_back(slot)


@pytest.mark.parametrize(
    ("gpus", "need", "sentence"),
    [
        (["0", "1"], Need(3), "asks for trainer.devices=3, and there are 2 GPUs .*gpus.*trainer.devices=2"),
        ([], Need(2), "asks for trainer.devices=2, and there is 1 worker .*workers.*trainer.devices=1"),
        (["0", "1"], Need(2, "cpu"), "there is 1 worker"),
        ([], Need(1, "gpu"), "trainer.accelerator=gpu, and there is no GPU to give it: say trainer=auto"),
    ],
)
def test_what_can_never_run_is_told_why(gpus: list[str], need: Need, sentence: str) -> None:
    refusal = Slots(gpus=gpus, workers=1).refusal(need)
    assert refusal is not None
    assert re.search(sentence, refusal)


def test_a_config_that_says_nothing_of_devices_asks_for_one() -> None:
    assert Need.of({}) == Need(1, "auto")
    assert Need.of({"trainer": {"accelerator": "cpu", "devices": 4}}) == Need(4, "cpu")
