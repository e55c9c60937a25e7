"""How weights start. Embeddings, norms and parts with parameters of their own kind have set themselves."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from etude.model.attention import Attention


class Init(ABC):
    """Fills the linear layers of a model: each bias with zeros, each matrix as a kind says."""

    def __call__(self, model: nn.Module) -> None:
        """Fill the linear layers of `model`, in the order in which it was built."""
        for module in model.modules():
            if isinstance(module, nn.Linear):
                self.fill(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    @abstractmethod
    def fill(self, matrix: Tensor) -> None:
        """One matrix (out, in), in place."""


class Glorot(Init):
    """Glorot uniform (Glorot and Bengio 2010): the published code's choice; the paper names none."""

    def fill(self, matrix: Tensor) -> None:
        """U(-b, b), b = sqrt(6 / (in + out))."""
        nn.init.xavier_uniform_(matrix)


class GlorotT2T(Glorot):
    """As `Glorot`, but matrices that read the same vectors count as one, as tensor2tensor built them in 2017.

    W_Q, W_K and W_V of self-attention were one matrix there, and W_K and W_V of attention to the encoder another. A
    wider matrix starts smaller: by sqrt(2) and sqrt(3/2) where all sizes are d_model.
    """

    def __call__(self, model: nn.Module) -> None:
        """Fill the linear layers of `model`."""
        super().__call__(model)
        for attention in model.modules():
            if isinstance(attention, Attention):
                joint = [attention.keys, attention.values]
                if not attention.crossing:
                    joint.append(attention.queries)
                bound = (6 / (attention.keys.in_features + sum(part.out_features for part in joint))) ** 0.5
                for part in joint:
                    nn.init.uniform_(part.weight, -bound, bound)


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
        """N(0, std^2)."""
        nn.init.normal_(matrix, std=self.std)
