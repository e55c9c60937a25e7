"""The keys of `hydra.launcher`, checked, and the slots they make of this machine."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from etude.errors import UserError
from etude.launchers.machine import usable_cores, visible_gpus
from etude.launchers.resources import Slots


def _whole(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


def _seconds(value: Any) -> bool:
    return type(value) in (int, float) and value > 0 and isfinite(value)


_NEEDED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "workers": ("auto or a whole number, 1 or more", lambda value: value == "auto" or _whole(value, 1)),
    "threads": ("auto or a whole number, 1 or more", lambda value: value == "auto" or _whole(value, 1)),
    "gpus": (
        "auto, a list of ids, or a whole number, 0 or more",
        lambda value: value == "auto" or isinstance(value, list | tuple) or _whole(value, 0),
    ),
    "runs_per_gpu": ("a whole number, 1 or more", lambda value: _whole(value, 1)),
    "devices_per_run": ("null or a whole number, 1 or more", lambda value: value is None or _whole(value, 1)),
    "retries": ("a whole number, 0 or more", lambda value: _whole(value, 0)),
    "timeout": ("null or a number of seconds above 0", lambda value: value is None or _seconds(value)),
    "grace": ("a number of seconds above 0", _seconds),
    "fail_fast": ("true or false", lambda value: type(value) is bool),
}


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
    fail_fast: bool

    def __post_init__(self) -> None:
        for key, (needed, fits) in _NEEDED.items():
            value = getattr(self, key)
            if not fits(value):
                told = "null" if value is None else value
                raise UserError(f"hydra.launcher.{key}={told}: it must be {needed}")

    @property
    def how(self) -> dict[str, Any]:
        """What is done with runs, by the arguments of `run_side_by_side`."""
        names = ("retries", "timeout", "grace", "fail_fast")
        return {name: getattr(self, name) for name in names}

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
