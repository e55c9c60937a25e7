"""Seed dropout as a function of (seed, step, micro-batch), so that any step can be replayed alone."""

import hashlib
import random

import numpy as np
import torch


def reseed(seed: int, step: int, micro_batch: int) -> None:
    """Seed torch's generators for one micro-batch of one step; for the user's parts Python's and NumPy's too."""
    digest = hashlib.blake2b(f"{seed}/{step}/{micro_batch}".encode(), digest_size=8).digest()
    number = int.from_bytes(digest) >> 1
    random.seed(number)
    np.random.seed(number % 2**32)
    if torch.accelerator.is_available():
        torch.manual_seed(number)
    else:  # seeds the CPU's generator alike, without searching for devices each time
        torch.default_generator.manual_seed(number)
