"""How weights start: every one a function of the seed and of its own name, whatever else the model holds.

So two arms of one seed begin with the same numbers wherever they have a matrix of the same name and shape, and what
tells them apart is what the arm changes. Linear layers are filled as a kind says; every other part that has weights of
its own fills them in `reset_parameters`, as PyTorch's modules do.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

import torch
from torch import Tensor, nn

from etude.model.attention import MultiHeadAttention


class Init(ABC):
    """Fills the weights of a model: each bias of a linear layer with zeros, each matrix as a kind says."""

    def __call__(self, model: nn.Module, seed: int) -> None:
        """Fill the weights of `model`.

        Args:
            model: any module; weights that it shares are filled once, under their first name.
            seed: of the run. PyTorch's own generator is left as it was.
        """
        for name, module in model.named_modules():
            with _seeded(seed, name):
                if isinstance(module, nn.Linear):
                    self.fill(module.weight)
                    if module.bias is not None:
                        nn.init.zeros_(module.bias)
                elif callable(reset := getattr(module, "reset_parameters", None)):
                    reset()

    @abstractmethod
    def fill(self, matrix: Tensor) -> None:
        """Fill one matrix (out, in), in place."""


class Glorot(Init):
    """Glorot uniform (Glorot and Bengio 2010), each of W_Q, W_K and W_V by its own size. The paper names no start.

    Its attention begins sqrt(2) times as large as that of the published code (`GlorotT2T`), and its scores, products of
    two such matrices, twice as large. Small and deep post-norm models then learn more slowly, or hardly at all.
    """

    def fill(self, matrix: Tensor) -> None:
        """Fill with U(-b, b), b = sqrt(6 / (in + out))."""
        nn.init.xavier_uniform_(matrix)


class GlorotT2T(Glorot):
    """Glorot uniform with the matrices that read the same vectors taken as one: the published code's start.

    W_Q, W_K and W_V of self-attention were one D x 3D matrix in tensor2tensor (2017), as they are in
    `torch.nn.MultiheadAttention`, and W_K and W_V of attention to the encoder another. A wider matrix starts smaller:
    by sqrt(2) and sqrt(3/2) where all sizes are d_model.
    """

    def __call__(self, model: nn.Module, seed: int) -> None:
        """Fill the weights of `model`; arguments as of `Init`."""
        super().__call__(model, seed)
        for name, attention in model.named_modules():
            if isinstance(attention, MultiHeadAttention):
                joint = {"k_proj": attention.k_proj, "v_proj": attention.v_proj}
                if not attention.is_cross:
                    joint["q_proj"] = attention.q_proj
                bound = (6 / (attention.k_proj.in_features + sum(part.out_features for part in joint.values()))) ** 0.5
                for part, linear in joint.items():
                    with _seeded(seed, f"{name}.{part}"):  # the numbers of Glorot, closer to zero
                        nn.init.uniform_(linear.weight, -bound, bound)


class Normal(Init):
    """N(0, std^2) whatever the size of the matrix (Radford et al. 2018).

    Raises:
        ValueError: std is not above zero.
    """

    def __init__(self, *, std: float) -> None:
        if std <= 0:
            raise ValueError(f"model.init.std must be above 0, not {std}")
        self.std = std

    def fill(self, matrix: Tensor) -> None:
        """Fill with N(0, std^2)."""
        nn.init.normal_(matrix, std=self.std)


@contextmanager
def _seeded(seed: int, name: str) -> Iterator[None]:
    """Draw as the seed and the name say meanwhile, on the processor; afterwards go on as if nothing had been drawn."""
    before = torch.get_rng_state()
    digest = blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    torch.default_generator.manual_seed(int.from_bytes(digest) >> 1)
    try:
        yield
    finally:
        torch.set_rng_state(before)
