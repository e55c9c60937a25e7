"""The keys of `hydra.launcher`, checked, and the slots they make of this machine."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from etude.errors import UserError
from etude.launchers.machine import usable_cores, visible_gpus
from etude.launchers.resources import Slots


@dataclass(frozen=True)
class Options:
    """What `conf/hydra/launcher/slots.yaml` holds, where each key is explained.

    Raises:
        UserError: a value makes no sense.
    """

    workers: int | str
    threads: int | str
    gpus: int | str | Sequence[int | str]
    runs_per_gpu: int
    devices_per_run: int | None
    retries: int
    timeout: float | None
    grace: float

    def __post_init__(self) -> None:
        _whole("workers", self.workers, or_else="auto")
        _whole("threads", self.threads, or_else="auto")
        _whole("runs_per_gpu", self.runs_per_gpu)
        _whole("devices_per_run", self.devices_per_run, or_else=None)
        _whole("retries", self.retries, least=0)
        _seconds("timeout", self.timeout, or_else=None)
        _seconds("grace", self.grace)

    def slots(self) -> Slots:
        """What there is to hand out.

        Raises:
            UserError: it is more than this machine has.
        """
        cores = usable_cores()
        threads = None if self.threads == "auto" else int(self.threads)
        workers = max(1, cores // (threads or 1)) if self.workers == "auto" else int(self.workers)
        gpus = self._gpu_ids()
        return Slots(workers=workers, threads=threads, gpus=gpus, runs_per_gpu=self.runs_per_gpu, cores=cores)

    def _gpu_ids(self) -> tuple[str, ...]:
        if isinstance(self.gpus, list | tuple):
            ids = tuple(str(gpu) for gpu in self.gpus)
            if len(set(ids)) < len(ids):
                raise UserError(
                    f"hydra.launcher.gpus={self.gpus} names a GPU twice: say runs_per_gpu=2 for two runs on each"
                )
            unseen = [gpu for gpu in ids if gpu not in visible_gpus()] if "CUDA_VISIBLE_DEVICES" in os.environ else []
            if unseen:  # they are somebody else's
                seen = ", ".join(visible_gpus()) or "none"
                raise UserError(
                    f"hydra.launcher.gpus: {unseen[0]} is not in CUDA_VISIBLE_DEVICES, which names {seen}: say auto"
                )
            return ids
        _whole("gpus", self.gpus, least=0, or_else="auto")
        if self.gpus == 0:
            return ()
        found = visible_gpus()
        if type(self.gpus) is not int:
            return found
        if len(found) < self.gpus:
            raise UserError(
                f"hydra.launcher.gpus={self.gpus}, but {len(found)} can be seen here: "
                "say gpus=auto, or name them: gpus=[0,1]"
            )
        return found[: self.gpus]


def _whole(key: str, value: Any, *, least: int = 1, or_else: str | None = "") -> None:
    """Refuse what is neither a whole number of at least `least` nor the word `or_else` ("" for no such word)."""
    if type(value) is int and value >= least:
        return
    if value != or_else or or_else == "":
        raise UserError(
            f"hydra.launcher.{key}={_told(value)}: it must be {_or(or_else)}a whole number, {least} or more"
        )


def _seconds(key: str, value: Any, *, or_else: str | None = "") -> None:
    if type(value) in (int, float) and value > 0 and isfinite(value):
        return
    if value != or_else or or_else == "":
        raise UserError(f"hydra.launcher.{key}={_told(value)}: it must be {_or(or_else)}a number of seconds above 0")


def _or(word: str | None) -> str:
    return f"{_told(word)} or " if word != "" else ""


def _told(value: Any) -> str:
    return "null" if value is None else str(value)
