"""What a GPU makes of the model: how fast it trains and decodes, at what share of its peak, and several runs at once.

    python benchmarks/gpu.py [--models base big] [--scale full] [--together 1 2 4] [--compile reduce-overhead]

Batches are random subwords, 25,000 source and target tokens as in the paper, in rows of 25. The peak is what the
same GPU makes of a large product of matrices in bfloat16; the share counts the operations that the model asks for
(`etude plan`), not those that kernels do besides. At the rates measured, the hours of Table 3 are projected. Runs at
once are processes of the pocket base model, as a sweep with `hydra.launcher.runs_per_gpu` starts them. `--compile` is
`trainer.compile` for all that train; compiling takes minutes before anything is timed.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from steps import LENGTH, training_step
from torch import Tensor

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.tokenizer import EOS, UNK
from etude.decoding.beam import BeamSearch
from etude.inspect.plan.device import Device
from etude.inspect.plan.memory import estimate_peak_memory
from etude.inspect.plan.runs import plan_runs
from etude.model.encoder_decoder import EncoderDecoder, State
from etude.study.study import load_study
from etude.tasks import build
from etude.tasks.size import measure_size

VOCABULARY = 37000


class Endless:
    """A model that gives no end token: random weights would end anywhere."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model, self.start = model, model.start

    def step(self, tokens: Tensor, state: State) -> Tensor:
        logits = self.model.step(tokens, state)
        logits[:, EOS] = -1e9
        return logits


def configured(model: str, scale: str, *overrides: str) -> dict[str, Any]:
    words = [f"model={model}", f"scale={scale}", "model/backend=sdpa", "precision=bf16-mixed", *overrides]
    return resolve(compose([*words, f"tokenizer.vocab_size={VOCABULARY}"]))


def finished(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[[], object], device: str, rounds: int) -> float:
    """Median of some rounds, after three that warm up."""
    taken = []
    for _ in range(rounds + 3):
        finished(device)
        started = time.perf_counter()
        work()
        finished(device)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[3:])


def peak(device: str, n: int) -> float:
    """Operations a second of a product of n x n matrices in bfloat16."""
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    return 2 * n**3 / seconds(lambda: a @ b, device, rounds=20)


def training(name: str, config: dict[str, Any], tokens: int, device: str, rounds: int, best: float) -> float:
    """Operations a second that training reaches, of those that the model asks for."""
    took = seconds(training_step(config, VOCABULARY, tokens, device), device, rounds)
    rows, size = tokens // LENGTH, measure_size(config)
    rate = rows * size.training_flops(LENGTH, LENGTH) / took
    print(f"{name}: {rows * LENGTH / took:,.0f} target tokens/s in training, {rate / best:.0%} of the peak", flush=True)
    if device == "cuda":
        most = torch.cuda.max_memory_allocated()
        planned = estimate_peak_memory(config, size, rows, LENGTH, LENGTH, gpu=True)
        print(f"{name}: {most / 1e9:.2f} GB allocated at the peak; etude plan: {planned / 1e9:.2f} GB", flush=True)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return rate


def project(rates: Mapping[str, float], scale: str) -> None:
    """Say how long the training of Table 3 takes here: an arm that was not timed at the rate of the first that was."""
    hours = {}
    for arm in load_study("table3").arms:
        rate = rates.get(arm, next(iter(rates.values())))
        config = configured("big" if arm == "big" else "base", scale, f"experiment=table3/{arm}")
        [plan] = plan_runs([config], Device(arm, rate, rate, price=0.0))
        hours[arm] = plan.training_flops / rate / 3600
    for name in rates:
        print(f"{name}: {hours[name]:,.1f} hours for all the steps of the paper")
    print(f"Table 3, {len(hours)} arms: {sum(hours.values()):,.1f} hours a seed", flush=True)


def decoding(name: str, scale: str, sentences: int, device: str, rounds: int) -> None:
    model = build.model(configured(name, scale), VOCABULARY).to(device).eval()
    source = torch.randint(UNK + 1, VOCABULARY, (sentences, LENGTH), device=device)
    search, mask = BeamSearch(beam=4, alpha=0.6, max_len_offset=0), torch.ones_like(source, dtype=torch.bool)

    def translate() -> None:
        with torch.inference_mode(), torch.autocast(device, torch.bfloat16):
            search(Endless(model), source, mask)

    took = seconds(translate, device, rounds)
    print(f"{name}: {sentences / took:,.0f} sentences of {LENGTH} tokens/s in beam search of 4", flush=True)


def worker(device: str, window: float, mode: str) -> None:
    """Train the pocket base model: warmed up, it says so, waits for a line, and prints the steps of one window."""
    config = configured("base", "pocket", f"trainer.compile={mode}")
    step = training_step(config, VOCABULARY, config["budget"]["target_tokens"], device)
    seconds(step, device, rounds=5)
    print("ready", flush=True)
    sys.stdin.readline()
    steps, end = 0, time.perf_counter() + window
    while time.perf_counter() < end:
        step()
        steps += 1
    finished(device)
    print(steps, flush=True)


def together(count: int, device: str, window: float, mode: str) -> float:
    """Steps a second of `count` runs at once, all of them summed."""
    command = [sys.executable, __file__, "--worker", f"--device={device}", f"--window={window}", f"--compile={mode}"]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    for one in workers:
        assert one.stdout is not None
        one.stdout.readline()  # it is ready
    for one in workers:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    return sum(int(one.communicate()[0]) for one in workers) / window


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--models", nargs="*", default=["base", "big"])
    words.add_argument("--scale", default="full")
    words.add_argument("--tokens", type=int, default=25_000, help="of the target, in a batch")
    words.add_argument("--sentences", type=int, default=256, help="that are translated at once")
    words.add_argument("--together", type=int, nargs="*", default=[1, 2, 4, 8], help="runs on one device")
    words.add_argument("--rounds", type=int, default=20)
    words.add_argument("--window", type=float, default=10.0, help="seconds for which runs at once are counted")
    words.add_argument("--matrix", type=int, default=8192, help="rows of the matrices that measure the peak")
    words.add_argument("--device", default="cuda")
    words.add_argument("--compile", default="false", choices=["false", "true", "reduce-overhead"])
    words.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = words.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True  # as `trainer.matmul=auto` in mixed precision
    if asked.worker:
        return worker(asked.device, asked.window, asked.compile)
    if asked.device == "cuda":
        print(torch.cuda.get_device_name())
    best = peak(asked.device, asked.matrix)
    print(f"peak measured in bfloat16: {best / 1e12:.1f} TFLOP/s", flush=True)
    rates = {}
    for name in asked.models:
        config = configured(name, asked.scale, f"trainer.compile={asked.compile}")
        rates[name] = training(name, config, asked.tokens, asked.device, asked.rounds, best)
        decoding(name, asked.scale, asked.sentences, asked.device, max(1, asked.rounds // 4))
    if rates:
        project(rates, asked.scale)
    for count in asked.together:
        rate = together(count, asked.device, asked.window, asked.compile)
        print(f"{count} pocket runs at once: {rate:,.0f} steps/s in all", flush=True)
    return None


if __name__ == "__main__":
    main()
