"""What a machine has for runs, and who holds it: shares of GPUs, and workers on the processor.

Nothing here looks at the machine: ids and numbers come from outside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from etude.studies.study import value_at


@dataclass(frozen=True)
class Need:
    """What a run asks for."""

    devices: int = 1  # processes, each with a device of its own
    accelerator: str = "auto"  # "cpu" takes no GPU, "gpu" and "cuda" take nothing else, "auto" takes what there is

    @classmethod
    def of(cls, config: dict[str, Any]) -> "Need":
        """What the `trainer` of a frozen config asks for."""
        return cls(value_at(config, "trainer.devices") or 1, value_at(config, "trainer.accelerator") or "auto")


@dataclass(frozen=True, eq=False)
class Slot:
    """What one run holds while it runs."""

    threads: int  # of each of its processes
    gpus: tuple[str, ...] = ()  # ids; none on the processor
    shares: int = 0  # of each of those GPUs
    workers: int = 0  # on the processor


class Slots:
    """Hands out GPUs and workers, and takes them back.

    A run on one GPU takes one of its shares. A run on several takes as many different GPUs, whole. A run on the
    processor takes one worker for each of its processes.

    Args:
        workers: processes at once on the processor.
        threads: of each process; None for one on the processor, and on a GPU for an equal share of the cores.
        gpus: ids, all different.
        runs_per_gpu: shares of each GPU.
        cores: of the machine.
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

    def refusal(self, need: Need) -> str | None:
        """Why a run would wait for ever, and the way out; None if it can run."""
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
        """Give a slot to each that may start now, by its place in `needs`.

        First come, first served: one that has to wait holds back those behind it that want the same kind of place, so
        that a large run is not overtaken for ever by small ones.
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
        """The run that held `slot` has ended.

        Raises:
            KeyError: nobody holds it.
        """
        self._held.remove(slot)
        self._free_workers += slot.workers
        for gpu in slot.gpus:
            self._free_shares[gpu] += slot.shares

    def hold_all(self, needs: Sequence[Need]) -> bool:
        """Whether there is room for all at once."""
        admitted = self.admit(needs)
        for slot in admitted.values():
            self.give_back(slot)
        return len(admitted) == len(needs)

    def _on_gpu(self, need: Need) -> bool:
        return bool(self._free_shares) and need.accelerator in ("auto", "gpu", "cuda")

    def _take_gpus(self, need: Need) -> Slot | None:
        """One share of the GPU that is least busy; or several GPUs that nobody uses."""
        shares = 1 if need.devices == 1 else self._runs_per_gpu
        by_room = sorted(self._free_shares, key=lambda gpu: self._free_shares[gpu], reverse=True)  # else in their order
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
