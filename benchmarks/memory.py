"""Peak memory of one optimizer step of the base model at full scale, 2,000 target tokens, on the processor.

    python benchmarks/memory.py [--tokens 2000] [KEY=VALUE ...]

The process as the system counts it, libraries included. Overrides are Hydra's: model=big, scale=small.
"""

import argparse
import resource

from steps import LENGTH, training_step

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.processor.allocator import keep_large_blocks
from etude.tasks.size import measure_size

VOCABULARY = 37000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("overrides", nargs="*")
    options = parser.parse_args()
    keep_large_blocks()
    config = resolve(compose(["scale=full", f"data.vocab_size={VOCABULARY}", *options.overrides]))
    step = training_step(config, VOCABULARY, options.tokens)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parameters, tokens = measure_size(config).parameters, options.tokens // LENGTH * LENGTH
    print(f"{parameters / 1e6:.1f} M parameters; {tokens:,} target tokens, vocabulary {VOCABULARY:,}")
    print(f"peak {peak / 1e6:.2f} GB, of which {before / 1e6:.2f} GB before the step")


if __name__ == "__main__":
    main()
