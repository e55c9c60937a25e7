"""Check the keys of `hydra.launcher`, and make slots from them and the cores and GPUs of this machine.

The GPUs are listed without torch, as importing it takes seconds.
"""

import logging
import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import takewhile
from math import isfinite
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.launch.resources import Slots
from etude.store.cores import usable_cores

logger = logging.getLogger(__name__)

_GPU = re.compile(r"GPU (\d+): ")
_SLICE = re.compile(r"\s+MIG .*\(UUID: (MIG-[^)]+)\)")
_ID = re.compile(r"\d+|(GPU|MIG)-.+")
_PATIENCE = 60.0  # seconds for nvidia-smi: without persistence mode, the driver takes a while per GPU


def _whole(least: int, *others: object) -> Callable[[Any], bool]:
    return lambda value: value in others or (type(value) is int and value >= least)


def _seconds(value: Any) -> bool:
    return type(value) in (int, float) and value > 0 and isfinite(value)


def _key(needed: str, fits: Callable[[Any], bool]) -> Any:
    """Make a field without default, with a description of its valid values and a function that checks one."""
    return field(metadata={"needed": needed, "fits": fits})


def refuse_unknown(given: Iterable[str], known: Collection[str]) -> None:
    """Check that a launcher has all keys that it is given.

    Raises:
        UserError: it has not; another launcher may.
    """
    for key in given:
        if key not in known:
            near = did_you_mean(key, known)
            raise UserError(f"hydra.launcher.{key}: this launcher has no such key, another hydra/launcher may; {near}")


def check_flags(**given: Any) -> None:
    """Raise if one of some keys of `hydra.launcher` is neither true nor false."""
    for key, value in given.items():
        if not isinstance(value, bool):
            raise UserError(f"hydra.launcher.{key}={value}: it must be true or false")


@dataclass(frozen=True)
class Options:
    """The keys of `conf/hydra/launcher/slots.yaml`, which explains them.

    Raises:
        UserError: a value is not valid.
    """

    workers: int | str = _key("auto or a whole number, 1 or more", _whole(1, "auto"))
    threads: int | str = _key("auto or a whole number, 1 or more", _whole(1, "auto"))
    gpus: int | str | Sequence[int | str] = _key(
        "auto, a list of ids, or a whole number, 0 or more",
        lambda value: isinstance(value, list | tuple) or _whole(0, "auto")(value),
    )
    runs_per_gpu: int = _key("a whole number, 1 or more", _whole(1))
    devices_per_run: int | None = _key("null or a whole number, 1 or more", _whole(1, None))
    retries: int = _key("a whole number, 0 or more", _whole(0))
    timeout: float | None = _key("null or a number of seconds above 0", lambda it: it is None or _seconds(it))
    grace: float = _key("a number of seconds above 0", _seconds)
    fail_fast: bool = _key("true or false", lambda value: type(value) is bool)

    def __post_init__(self) -> None:
        for key in fields(self):
            value = getattr(self, key.name)
            if not key.metadata["fits"](value):
                typed = "null" if value is None else value
                raise UserError(f"hydra.launcher.{key.name}={typed}: it must be {key.metadata['needed']}")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Options":
        """Make the options from the keys of `hydra.launcher`.

        Raises:
            UserError: a key is unknown or missing, or a value is not valid.
        """
        refuse_unknown(given, [key.name for key in fields(cls)])
        for key in fields(cls):
            if key.name not in given:
                raise UserError(f"hydra.launcher.{key.name} is missing: it must be {key.metadata['needed']}")
        return cls(**given)

    @property
    def run_arguments(self) -> dict[str, Any]:
        """The options that are arguments of `run_side_by_side`."""
        return {name: getattr(self, name) for name in ("retries", "timeout", "grace", "fail_fast")}

    def slots(self) -> Slots:
        """Make the slots: the workers and GPUs that runs may use.

        Raises:
            UserError: the options name more GPUs than this machine has, or GPUs that this process may not use.
        """
        cores = usable_cores()
        threads = None if self.threads == "auto" else int(self.threads)
        workers = max(1, cores // (threads or 1)) if self.workers == "auto" else int(self.workers)
        gpus = self._gpus_by_name(self.gpus) if isinstance(self.gpus, list | tuple) else self._count_gpus()
        return Slots(workers=workers, threads=threads, gpus=gpus, runs_per_gpu=self.runs_per_gpu, cores=cores)

    def _gpus_by_name(self, named: Sequence[int | str]) -> tuple[str, ...]:
        ids = tuple(map(str, named))
        if len(set(ids)) < len(ids):
            raise UserError(f"hydra.launcher.gpus={named} names a GPU twice: say runs_per_gpu=2 for two runs on each")
        seen = visible_gpus() if "CUDA_VISIBLE_DEVICES" in os.environ else ids
        if unseen := [gpu for gpu in ids if gpu not in seen]:  # allocated to another user or job
            raise UserError(
                f"hydra.launcher.gpus: {unseen[0]} is not in CUDA_VISIBLE_DEVICES, which names "
                f"{', '.join(seen) or 'none'}: say auto"
            )
        return ids

    def _count_gpus(self) -> tuple[str, ...]:
        found = visible_gpus() if self.gpus else ()
        if not isinstance(self.gpus, int):
            return found
        if len(found) < self.gpus:
            raise UserError(
                f"hydra.launcher.gpus={self.gpus}, but {len(found)} can be seen here: "
                "say gpus=auto, or name them: gpus=[0,1]"
            )
        return found[: self.gpus]


def visible_gpus() -> tuple[str, ...]:
    """Return the ids of the GPUs this process may use: those in CUDA_VISIBLE_DEVICES, else all of the machine."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:  # like CUDA, use the ids before the first invalid one
        ids = (part.strip() for part in named.split(","))
        return tuple(dict.fromkeys(takewhile(_ID.fullmatch, ids)))
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=_PATIENCE)
        said = f"{listing.stderr}{listing.stdout}".strip().partition("\n")[0] or f"exit status {listing.returncode}"
        answer, trouble = ("", said) if listing.returncode else (listing.stdout, "")
    except OSError:  # no driver, no GPU
        return ()
    except subprocess.TimeoutExpired:
        answer, trouble = "", f"no answer in {_PATIENCE:g} seconds"
    if trouble:
        logger.warning("nvidia-smi: %s; runs get no GPU of this machine (hydra.launcher.gpus=[0] names one)", trouble)
    return parse_gpu_list(answer)


def parse_gpu_list(listing: str) -> tuple[str, ...]:
    """Parse the GPU ids from the output of `nvidia-smi -L`; for a GPU partitioned with MIG, those of its instances.

    Example:
        >>> parse_gpu_list("GPU 0: H100 (UUID: GPU-5)\\n  MIG 1g Device 0: (UUID: MIG-7a)\\nGPU 1: T4 (UUID: GPU-6)")
        ('MIG-7a', '1')
    """
    ids: dict[str, list[str]] = {}
    for line in listing.splitlines():
        if gpu := _GPU.match(line):
            ids[gpu[1]] = []
        elif ids and (part := _SLICE.match(line)):
            ids[list(ids)[-1]].append(part[1])
    return tuple(one for gpu, slices in ids.items() for one in slices or [gpu])
