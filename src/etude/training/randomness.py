"""Dropout as a function of (seed, step, micro-batch), so that any step can be replayed alone."""

import hashlib

import torch


def reseed(seed: int, step: int, micro_batch: int) -> None:
    """Set torch's generators to the state that belongs to this step of this run, and to this micro-batch."""
    digest = hashlib.blake2b(f"{seed}/{step}/{micro_batch}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest) >> 1)
