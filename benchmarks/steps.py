"""What the harness adds to a training step: ours, rows and progress included, against a bare PyTorch loop.

    OMP_NUM_THREADS=1 python benchmarks/steps.py [scale=pocket ...]

Both train the same model on the same batches with the same optimizer, in turns in one process, and the figure is the
median over turns of their ratio. The bare loop has what training needs and nothing else: batch, forward, loss,
backward, update, next learning rate.
"""

import statistics
import sys
import tempfile
import time
from typing import Any

import torch

from etude.config.compose import compose
from etude.config.identity import freeze
from etude.data.store import TokenStore
from etude.logs import quiet_libraries
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.training.allocator import keep_large_blocks
from etude.training.build import training_data, training_module
from etude.training.metrics_writers import ProgressFile
from etude.training.randomness import reseed
from etude.training.trainer import fit

STEPS, TURNS = 200, 7


def bare(config: dict[str, Any], store: TokenStore) -> float:
    module = training_module(config, build.model(config, store.vocab_size))
    batches = iter(training_data(config, store, start_step=0).train_dataloader())
    [optimizer], [schedule] = _optimizers(module)
    module.train()
    started = time.perf_counter()
    for step in range(STEPS):
        batch = next(batches)
        reseed(config["seed"], step, 0)
        optimizer.zero_grad()
        loss = module.loss(module(batch), batch.target_out) / batch.target_tokens
        loss.backward()
        optimizer.step()
        schedule.step()
    return time.perf_counter() - started


def _optimizers(module: Any) -> tuple[list[Any], list[Any]]:
    made = module.configure_optimizers()
    return [made["optimizer"]], [made["lr_scheduler"]["scheduler"]]


def ours(run: RunDir, config: dict[str, Any], store: TokenStore) -> float:
    module = training_module(config, build.model(config, store.vocab_size))
    progress = ProgressFile(run.progress_file, STEPS)
    seconds, *_ = fit(run, config, module, store, [], progress, {}, [])
    run.checkpoint.unlink()
    return seconds


def main() -> None:
    torch.set_num_threads(1)
    keep_large_blocks()
    quiet_libraries()
    with tempfile.TemporaryDirectory() as folder:
        # No validation falls into the steps, and the checkpoint of the last one is written after the clock has stopped.
        setting = [f"budget.max_steps={STEPS}", f"budget.val_every={10 * STEPS}", "logger=none", "trainer=cpu"]
        run = freeze(compose([*sys.argv[1:], *setting, f"runs_dir={folder}"]))
        config = run.config()
        store = build.token_store(config)
        turns = [(bare(config, store), ours(run, config, store)) for _ in range(TURNS)]
    ratio = statistics.median(one / other for other, one in turns)
    for name, seconds in zip(("bare PyTorch", "étude"), zip(*turns, strict=True), strict=True):
        print(f"{name:12}  {1000 * statistics.median(seconds) / STEPS:.2f} ms a step")
    print(f"ratio         {ratio:.3f}")


if __name__ == "__main__":
    main()
