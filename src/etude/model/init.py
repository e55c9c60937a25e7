"""How weights start."""

from torch import nn


class Glorot:
    """Glorot uniform for every matrix, zero for every bias (the published code's choice; the paper names none)."""

    def __call__(self, model: nn.Module) -> None:
        """Fill the linear layers of `model`; embeddings and norms have set themselves."""
        for module in model.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
