"""Dropout as a function of (seed, step, piece), so that any step can be replayed alone."""

import hashlib

import torch


def reseed(seed: int, step: int, piece: int) -> None:
    """Set torch's generators to the state that belongs to this step of this run, and to this piece of its batch."""
    digest = hashlib.blake2b(f"{seed}/{step}/{piece}".encode(), digest_size=8).digest()
    torch.manual_seed(int.from_bytes(digest) >> 1)
