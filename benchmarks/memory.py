"""Peak memory of one optimizer step of the base model at full scale, 2,000 target tokens, on the processor.

    python benchmarks/memory.py [--tokens 2000] [KEY=VALUE ...]

The process as the system counts it, libraries included. Overrides are Hydra's: model=big, scale=small.
"""

import argparse
import resource

import torch

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.model.chunks import sum_cost
from etude.processor.allocator import keep_large_blocks
from etude.tasks import build
from etude.training.build import training_module

VOCABULARY, LENGTH = 37000, 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("overrides", nargs="*")
    options = parser.parse_args()
    keep_large_blocks()
    config = resolve(compose(["scale=full", *options.overrides]))
    module = training_module(config, build.model(config, VOCABULARY))
    optimizer = module.make_optimizer(module.parameters())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tokens = torch.randint(4, VOCABULARY, (options.tokens // LENGTH, LENGTH))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    nats = sum_cost(module.model, tokens, mask, tokens, lambda logits, rows: module.loss(logits, tokens[rows]))
    (nats / tokens.numel()).backward()
    optimizer.step()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parameters = sum(parameter.numel() for parameter in module.parameters())
    print(f"{parameters / 1e6:.1f} M parameters; {tokens.numel():,} target tokens, vocabulary {VOCABULARY:,}")
    print(f"peak {peak / 1e6:.2f} GB, of which {before / 1e6:.2f} GB before the step")


if __name__ == "__main__":
    main()
