"""The training speed and price of a device, from `conf/devices.yaml` or from a short measurement on this machine."""

import time
from dataclasses import dataclass
from math import inf

import torch

from etude.errors import UserError, did_you_mean
from etude.model.chunks import sum_cost
from etude.model.precision import autocast, computed_precision
from etude.paths import folders_of
from etude.processor.matmul import choose_matmul
from etude.tasks import build
from etude.tasks.size import Config, measure_size
from etude.yaml_file import read_yaml

_SECONDS = 4.0  # of a measurement, without the search for its batch size
_LENGTH = 25  # tokens of each source and of each target
_RATES = {"full": 1e-9, "half": 1e-9, "share": 1e-9, "price": 0.0}  # keys of a device, and the least value of each


@dataclass(frozen=True)
class Device:
    """The device that a plan computes for.

    Attributes:
        name: its name in `conf/devices.yaml`, or a description of the measured machine.
        full: floating-point operations per second that training reaches in 32 bits.
        half: the same with matrix products in 16 bits.
        price: US dollars per hour.
        memory: bytes of GPU memory; infinite for a CPU.
    """

    name: str
    full: float
    half: float
    price: float
    memory: float = inf

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU, with memory of its own."""
        return self.memory < inf

    def flops(self, precision: str) -> float:
        """Return the operations per second in the `precision` of a config: 32-true, 64-true, 16-mixed, bf16-mixed."""
        return {"32-true": self.full, "64-true": self.full / 2}.get(self.computed(precision), self.half)

    def computed(self, precision: str) -> str:
        """Return the precision in which the device computes that of a config; a CPU is taken to be this one."""
        return computed_precision(precision, "cuda" if self.is_gpu else "cpu")


def load_device(name: str) -> Device:
    """Load the device `name` from `conf/devices.yaml`.

    Raises:
        UserError: there is no such device, or its rates are incomplete.
    """
    files = [folder / "devices.yaml" for folder in reversed(folders_of("conf"))]
    found = {file: read_yaml(file) or {} for file in files if file.is_file()}
    for file, devices in found.items():
        if not isinstance(devices, dict):
            raise UserError(f"{file} must map names of devices to their rates, as conf/devices.yaml of étude does")
    known = {name: (file, rates) for file, devices in found.items() for name, rates in devices.items()}
    if name not in known:
        raise UserError(f"device={name} is not in conf/devices.yaml; {did_you_mean(name, known)}")
    file, rates = known[name]
    needed = isinstance(rates, dict) and all(_is_rate(rates.get(key), least) for key, least in _RATES.items())
    if not needed or not _is_rate(rates.get("memory", 1), 1e-9):
        raise UserError(
            f"{file}: {name} must have full, half and share above 0, price, and memory (GB) if any, as the others have"
        )
    full, half = (rates[bits] * 1e12 * rates["share"] for bits in ("full", "half"))
    return Device(name, full, half, rates["price"], rates.get("memory", inf) * 1e9)


def _is_rate(value: object, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < inf


def measure_device(config: Config) -> Device:
    """Measure this machine by timing real training steps of a config on random tokens.

    The batch is doubled until a step takes 0.8 seconds or the budget's `target_tokens` are reached: large enough to use
    the device well, small enough to measure a model that is too large for this machine.
    """
    from etude.training.build import training_module  # imports Lightning, which other plans do not need

    budget, vocab_size = config["budget"], config["tokenizer"]["vocab_size"]
    trainer, precision = config["trainer"], config["precision"]
    where = build.device(trainer["accelerator"].replace("gpu", "cuda"))
    model = build.model(config, vocab_size)
    # as training does, so that it is what gets timed
    choose_matmul(trainer["matmul"], model, accelerator=trainer["accelerator"], precision=precision)
    module = training_module(config, model).to(where)
    optimizer = module.make_optimizer(module.model.named_parameters())

    def seconds(sentences: int) -> float:
        """Time one step."""
        began = time.perf_counter()
        tokens = torch.randint(4, vocab_size, (sentences, _LENGTH), device=where)
        mask = torch.ones_like(tokens, dtype=torch.bool)
        with autocast(precision, where):
            loss = sum_cost(module.model, tokens, mask, tokens, lambda logits, rows: module.loss(logits, tokens[rows]))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if where.type == "cuda":
            torch.cuda.synchronize(where)
        return time.perf_counter() - began

    sentences, most = 1, max(1, budget["target_tokens"] // _LENGTH)
    while seconds(sentences) < _SECONDS / 5 and sentences < most:
        sentences = min(2 * sentences, most)
    taken = [seconds(sentences)]
    while sum(taken) < _SECONDS:
        taken.append(seconds(sentences))
    flops = len(taken) * sentences * measure_size(config).training_flops(_LENGTH, _LENGTH) / sum(taken)
    memory = torch.cuda.get_device_properties(where).total_memory if where.type == "cuda" else inf
    full = 2 * flops if precision == "64-true" else flops
    return Device(f"this machine, measured: {flops / 1e9:,.0f} GFLOP/s", full, flops, 0.0, memory)
