"""Dropout as a function of (seed, step, rank), so that any step can be replayed alone."""

import hashlib

import torch


def reseed(seed: int, step: int, rank: int) -> None:
    """Set torch's generators to the state that belongs to this step of this run on this rank."""
    digest = hashlib.blake2b(f"{seed}/{step}/{rank}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest) >> 1)
