"""Weight initialisation. Each weight depends on the seed and on its own name only, not on the rest of the model.

Two arms of a study with the same seed therefore start from the same numbers in every matrix of the same name and shape,
and differ only in what the arm changes. `Init.fill` initialises the matrices of linear layers; every other module with
weights of its own initialises them in `reset_parameters`, as PyTorch's modules do.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b

import torch
from torch import Tensor, nn

from etude.model.attention import MultiHeadAttention

_ADDED = (".out_proj", ".outer")  # of names: the matrices whose outputs are added to the residual stream
_EXPERT = re.compile(r"\.(experts|shared)\.\d+")  # of a name, which of a mixture


class Init(ABC):
    """Base class: initialises the weights of a model. Biases of linear layers are zero; `fill` initialises matrices."""

    def __call__(self, model: nn.Module, seed: int) -> None:
        """Initialise the weights of `model`.

        Args:
            model: any module; weights that it shares are initialised once, under their first name.
            seed: of the run. The state of PyTorch's own generator does not change.
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
    """Glorot uniform (Glorot and Bengio 2010), each of W_Q, W_K and W_V by its own size.

    The paper does not say how weights are initialised. The attention matrices are sqrt(2) times as large here as in the
    published code (`GlorotT2T`), and the scores, products of two of them, twice as large. Small and deep post-norm
    models then learn more slowly, or hardly at all.
    """

    def fill(self, matrix: Tensor) -> None:
        """Fill with U(-b, b), b = sqrt(6 / (in + out))."""
        nn.init.xavier_uniform_(matrix)


class GlorotT2T(Glorot):
    """Glorot uniform as in the published code, where matrices with the same input count as one.

    In tensor2tensor (2017), W_Q, W_K and W_V of self-attention were one D x 3D matrix, as they are in
    `torch.nn.MultiheadAttention`, and so were W_K and W_V of attention to the encoder. A wider matrix gets smaller
    values: by a factor of sqrt(2) and sqrt(3/2) where all sizes are d_model.
    """

    def __call__(self, model: nn.Module, seed: int) -> None:
        """Initialise the weights of `model`; arguments as in `Init`."""
        super().__call__(model, seed)
        for name, attention in model.named_modules():
            if isinstance(attention, MultiHeadAttention):
                names = ("k_proj", "v_proj") if attention.is_cross else ("k_proj", "v_proj", "q_proj")
                width = attention.v_proj.in_features
                parts = {name: getattr(attention, name) for name in names}  # of which an attention may lack some
                joint = {n: p for n, p in parts.items() if isinstance(p, nn.Linear) and p.in_features == width}
                bound = (6 / (width + sum(linear.out_features for linear in joint.values()))) ** 0.5
                for part, linear in joint.items():
                    with _seeded(seed, f"{name}.{part}"):  # the random numbers of Glorot, times a smaller bound
                        nn.init.uniform_(linear.weight, -bound, bound)


class Normal(Init):
    """N(0, std^2) for matrices of any size (Radford et al. 2018).

    Raises:
        ValueError: `std` is not above zero.
    """

    def __init__(self, *, std: float) -> None:
        if std <= 0:
            raise ValueError(f"model.init.std must be above 0, not {std}")
        self.std = std

    def fill(self, matrix: Tensor) -> None:
        """Fill with N(0, std^2)."""
        nn.init.normal_(matrix, std=self.std)


class GPT2(Normal):
    """N(0, std^2) for every matrix, those of embeddings and learned positions too (Radford et al. 2019, section 2.3).

    The matrices whose outputs are added to the residual stream, K in a stack, are 1 / sqrt(K) as large: a stack of any
    depth then adds as much. So these follow from the number of layers as well. Those are the projections of attention
    and the outer matrices of feed-forward networks; other additions, such as those of convolutions, stay as they are.
    """

    def __call__(self, model: nn.Module, seed: int) -> None:
        """Initialise the weights of `model`; arguments as in `Init`."""
        super().__call__(model, seed)
        for name, module in model.named_modules():
            if isinstance(module, nn.Embedding):
                with _seeded(seed, name):
                    self.fill(module.weight)
        added = _added(model)
        additions = _additions(model, added)
        for name, matrix in added.items():
            matrix.weight.data.mul_(additions[name.partition(".")[0]] ** -0.5)


class Fixup(Init):
    """He uniform, but branches that add nothing at first, for models without norms (Zhang et al. 2019, section 3).

    Of a branch, which is a sub-layer, the last matrix is zero and its other m - 1 are `L^(-1 / (2m - 2))` as large, for
    L branches in all. It knows the Transformer's branches alone. Attention to the encoder is left as He has it, as in
    the code of Narang et al. 2021.
    """

    def fill(self, matrix: Tensor) -> None:
        """Fill with U(-b, b), b = sqrt(6 / in)."""
        nn.init.kaiming_uniform_(matrix, nonlinearity="relu")

    def __call__(self, model: nn.Module, seed: int) -> None:
        """Initialise the weights of `model`; arguments as in `Init`."""
        super().__call__(model, seed)
        added = _added(model)
        branches = sum(_additions(model, added).values())
        for name, last in added.items():
            branch = model.get_submodule(name.rpartition(".")[0].removesuffix(".network"))
            if getattr(branch, "is_cross", False):
                continue
            others = [one for one in branch.modules() if isinstance(one, nn.Linear) and one is not last]
            for linear in others:  # m - 1 of them
                linear.weight.data.mul_(branches ** (-1 / (2 * len(others))))
            nn.init.zeros_(last.weight)


def _added(model: nn.Module) -> dict[str, nn.Linear]:
    """Return the matrices whose outputs are added to the residual stream, by name.

    Of attention that a network of its own follows, it is that network's.
    """
    found = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.endswith(_ADDED)
    }
    return {name: one for name, one in found.items() if f"{name.removesuffix('.out_proj')}.network.outer" not in found}


def _additions(model: nn.Module, added: Iterable[str]) -> dict[str, int]:
    """Return how many branches each stack adds: experts make one, and a layer that is used N times N."""
    branches = {_EXPERT.sub("", name) for name in added}
    counts = Counter(name.partition(".")[0] for name in branches)
    for stack in counts:
        steps = getattr(model.get_submodule(stack), "steps", ())
        if steps:
            counts[stack] = counts[stack] * len(steps) // (max(steps) + 1)
    return counts


@contextmanager
def _seeded(seed: int, name: str) -> Iterator[None]:
    """Seed PyTorch's CPU generator with a hash of seed and name, and restore its state at the end."""
    digest = blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int.from_bytes(digest) >> 1)
        yield
