"""What a GPU makes of the model: how fast it trains and decodes, at what share of its peak, and several runs at once.

    python benchmarks/gpu.py [--models base big gpt] [--profile] [--together 1 2 4] [--compile reduce-overhead]

Batches are random subwords, 25,000 source and target tokens as in the paper, in rows of 25. The peak is what the
same GPU makes of a large product of matrices in bfloat16; the share counts the operations that the model asks for
(`etude plan`), not those that kernels do besides. At the rates measured, the hours of Table 3 are projected. Runs at
once are processes of the pocket base model, as a sweep with `hydra.launcher.runs_per_gpu` starts them. `--compile` is
`trainer.compile` for all that train; compiling takes minutes before anything is timed. `gpt` is a decoder-only model of
124 million parameters at contexts of 1,024. `--profile` says what a step's time goes to, in place of all else; GPU.md
says in which order to measure, and what follows from each answer.
"""

import argparse
import re
import statistics
import subprocess
import sys
import time
import warnings
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
GPT = [
    "task=language_modelling",
    "data=text",
    "model.n_layers=12",
    "model.d_model=768",
    "model.d_ff=3072",
    "model.heads=12",
    "model/residual=pre",
    "model/position=learned",
    "model.position.max_length=1024",
    "model/feedforward=gelu",
    "optimizer=adamw",
    "loss.smoothing=0",
    "budget.context=1024",
    "tokenizer.vocab_size=50304",
]
KINDS = {  # of what a step computes, by the names of kernels and of PyTorch's operations: the first that fits
    "attention": "flash|fmha|attention|attend",
    "products of matrices": r"gemm|gemv|cutlass|nvjet|xmma|mm$|mm_|mkldnn_linear",
    "loss": "softmax|nll|cross_?entropy|smoothing|chunked",
    "optimizer": "adam|foreach|multi_tensor",
    "copies and types": "copy|memcpy|memset|cat|fill|zero_|arange",
}


class Endless:
    """A model that gives no end token: random weights would end anywhere."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model, self.start = model, model.start

    def step(self, tokens: Tensor, state: State) -> Tensor:
        logits = self.model.step(tokens, state)
        logits[:, EOS] = -1e9
        return logits


def configured(model: str, scale: str, *overrides: str) -> dict[str, Any]:
    words = GPT if model == "gpt" else [f"model={model}", f"tokenizer.vocab_size={VOCABULARY}"]
    return resolve(compose([*words, f"scale={scale}", "model/backend=sdpa", "precision=bf16-mixed", *overrides]))


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


def length_of(config: dict[str, Any]) -> int:
    """The tokens of a row: of running text a context, else of a sentence."""
    return int(config["budget"].get("context", LENGTH))


def step_of(config: dict[str, Any], tokens: int, device: str) -> Callable[[], object]:
    """A step of training on rows as long as the task's."""
    return training_step(config, config["tokenizer"]["vocab_size"], tokens, device, length_of(config))


def profile(name: str, config: dict[str, Any], tokens: int, device: str, rounds: int) -> None:
    """Print the shares of a step's time: kinds of work, and on a GPU the time in which nothing runs."""
    step = step_of(config, tokens, device)
    quiet = seconds(step, device, rounds)  # the profiler itself takes time
    with torch.profiler.profile(activities=[*torch.profiler.supported_activities()]) as taken:
        for _ in range(rounds):
            step()
        finished(device)
    on_gpu = device == "cuda"
    if on_gpu:
        print(f"{name}: {waits(step)} times a step, the processor waits for the GPU")
    spent, launched = dict.fromkeys([*KINDS, "element by element"], 0.0), 0
    for row in taken.key_averages():
        if on_gpu and row.device_type == torch.autograd.DeviceType.CPU:
            continue  # it launches what is counted
        took = row.self_device_time_total if on_gpu else row.self_cpu_time_total
        kind = next((kind for kind, names in KINDS.items() if re.search(names, row.key, re.IGNORECASE)), [*spent][-1])
        spent[kind] += took / 1e6 / rounds
        launched += row.count if took else 0
    if on_gpu:
        spent["nothing runs"] = max(0.0, quiet - sum(spent.values()))
    print(f"{name}: {1e3 * quiet:.1f} ms a step, {launched / rounds:,.0f} {'kernels' if on_gpu else 'operations'}")
    for kind, took in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"  {took / sum(spent.values()):4.0%}  {kind}", flush=True)


def waits(step: Callable[[], object]) -> int:
    """How often a step waits for a number from the GPU."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        step()
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(one.message) for one in said)


def training(name: str, config: dict[str, Any], tokens: int, device: str, rounds: int, best: float) -> float:
    """Operations a second that training reaches, of those that the model asks for."""
    length = length_of(config)
    took = seconds(step_of(config, tokens, device), device, rounds)
    rows, size, source = tokens // length, measure_size(config), 1 if "context" in config["budget"] else length
    rate = rows * size.training_flops(source, length) / took
    print(f"{name}: {rows * length / took:,.0f} target tokens/s in training, {rate / best:.0%} of the peak", flush=True)
    if device == "cuda":
        most = torch.cuda.max_memory_allocated()
        planned = estimate_peak_memory(config, size, rows, source, length, gpu=True)
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
    words.add_argument("--profile", action="store_true", help="what a step's time goes to, and nothing else")
    words.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = words.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True  # as `trainer.matmul=auto` in mixed precision
    if asked.worker:
        return worker(asked.device, asked.window, asked.compile)
    if asked.device == "cuda":
        print(torch.cuda.get_device_name())
    for name in asked.models if asked.profile else ():
        config = configured(name, asked.scale, f"trainer.compile={asked.compile}")
        profile(name, config, asked.tokens, asked.device, asked.rounds)
    if asked.profile:
        return None
    best = peak(asked.device, asked.matrix)
    print(f"peak measured in bfloat16: {best / 1e12:.1f} TFLOP/s", flush=True)
    rates = {}
    for name in asked.models:
        config = configured(name, asked.scale, f"trainer.compile={asked.compile}")
        rates[name] = training(name, config, asked.tokens, asked.device, asked.rounds, best)
        if name != "gpt":
            decoding(name, asked.scale, asked.sentences, asked.device, max(1, asked.rounds // 4))
    of_table = {name: rate for name, rate in rates.items() if name != "gpt"}
    if of_table:
        project(of_table, asked.scale)
    for count in asked.together:
        rate = together(count, asked.device, asked.window, asked.compile)
        print(f"{count} pocket runs at once: {rate:,.0f} steps/s in all", flush=True)
    return None


if __name__ == "__main__":
    main()
