"""Allocate the resources of a machine to runs: shares of GPUs, and workers on the CPU.

Nothing here inspects the machine: the caller passes ids and numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from etude.study.study import value_at


@dataclass(frozen=True)
class Need:
    """The resources that a run needs."""

    devices: int = 1  # processes, each with its own device
    accelerator: str = "auto"  # "cpu": never a GPU; "gpu" and "cuda": only GPUs; "auto": a GPU if there are any

    @classmethod
    def of(cls, config: dict[str, Any]) -> "Need":
        """Read the needs of a run from the `trainer` of its frozen config."""
        return cls(value_at(config, "trainer.devices") or 1, value_at(config, "trainer.accelerator") or "auto")


@dataclass(frozen=True, eq=False)
class Slot:
    """The resources allocated to one run while it runs."""

    threads: int  # per process
    gpus: tuple[str, ...] = ()  # ids; none on the CPU
    shares: int = 0  # taken from each of those GPUs
    workers: int = 0  # on the CPU


class Slots:
    """Allocates and releases GPUs and CPU workers.

    A run on one GPU takes one of its shares. A run on several takes as many different GPUs, each entirely. A run on the
    CPU takes one worker per process.

    Args:
        workers: the number of processes that may run on the CPU at once.
        threads: threads per process; None: one on the CPU, and an equal share of the cores on a GPU.
        gpus: ids, all different.
        runs_per_gpu: the number of shares of each GPU.
        cores: the number of cores of the machine.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        threads: int | None = None,
        gpus: Sequence[str] = (),
        runs_per_gpu: int = 1,
        cores: int = 1,
    ) -> None:
        self._runs_per_gpu, self._cores, self._threads = runs_per_gpu, cores, threads
        self._free_shares = dict.fromkeys(gpus, runs_per_gpu)
        self._workers = self._free_workers = workers
        self._held: set[Slot] = set()

    @property
    def count(self) -> int:
        """How many runs on one device there is room for."""
        return len(self._free_shares) * self._runs_per_gpu or self._workers

    def refusal(self, need: Need) -> str | None:
        """Explain why a run could never start, and what to change; None if it can start."""
        if need.accelerator in ("gpu", "cuda") and not self._free_shares:
            return (
                f"asks for trainer.accelerator={need.accelerator}, and there is no GPU to give it: say trainer=auto, "
                "or name the GPUs with hydra.launcher.gpus=[0]"
            )
        if self._on_gpu(need):
            has, kind, key = len(self._free_shares), "GPU", "gpus"
        else:
            has, kind, key = self._workers, "worker", "workers"
        if need.devices <= has:
            return None
        there = f"is 1 {kind}" if has == 1 else f"are {has} {kind}s"
        return (
            f"asks for trainer.devices={need.devices}, and there {there} (hydra.launcher.{key}): "
            f"say trainer.devices={has}, or give it more"
        )

    def admit(self, needs: Sequence[Need]) -> dict[int, Slot]:
        """Allocate a slot to each run that can start now; the keys are indices into `needs`.

        First come, first served: a run that must wait blocks later runs that need the same kind of device, so that
        small runs do not starve a large one.
        """
        admitted: dict[int, Slot] = {}
        held_back: set[bool] = set()
        for place, need in enumerate(needs):
            on_gpu = self._on_gpu(need)
            slot = None if on_gpu in held_back else self._take_gpus(need) if on_gpu else self._take_workers(need)
            if slot is None:
                held_back.add(on_gpu)
                continue
            self._held.add(slot)
            admitted[place] = slot
        return admitted

    def give_back(self, slot: Slot) -> None:
        """Release the slot of a run that has ended.

        Raises:
            KeyError: the slot is not allocated.
        """
        self._held.remove(slot)
        self._free_workers += slot.workers
        for gpu in slot.gpus:
            self._free_shares[gpu] += slot.shares

    def hold_all(self, needs: Sequence[Need]) -> bool:
        """Return whether all these runs fit at once."""
        admitted = self.admit(needs)
        for slot in admitted.values():
            self.give_back(slot)
        return len(admitted) == len(needs)

    def _on_gpu(self, need: Need) -> bool:
        return bool(self._free_shares) and need.accelerator in ("auto", "gpu", "cuda")

    def _take_gpus(self, need: Need) -> Slot | None:
        """Take one share of the least busy GPU, or several free GPUs."""
        shares = 1 if need.devices == 1 else self._runs_per_gpu
        by_room = sorted(self._free_shares, key=lambda gpu: self._free_shares[gpu], reverse=True)  # ties keep order
        gpus = tuple(gpu for gpu in by_room if self._free_shares[gpu] >= shares)[: need.devices]
        if len(gpus) < need.devices:
            return None
        for gpu in gpus:
            self._free_shares[gpu] -= shares
        of_the_cores = self._cores * shares // (len(self._free_shares) * self._runs_per_gpu)
        return Slot(self._threads or max(1, of_the_cores), gpus, shares)

    def _take_workers(self, need: Need) -> Slot | None:
        if self._free_workers < need.devices:
            return None
        self._free_workers -= need.devices
        return Slot(self._threads or 1, workers=need.devices)
