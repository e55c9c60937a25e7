"""One layer of each kind, made of the parts that a config chooses."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn

from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.errors import UserError, did_you_mean
from etude.paths import find_file
from etude.tasks import build
from etude.yaml_file import read_yaml

# A layer and nothing around it but its residual connection.
_BARE = [
    "scale=full",
    "model.n_layers=1",
    "model.dropout=0",
    *(f"model/{part}=none" for part in ("feedforward", "norm", "position")),
]
REGIMES = {"anywhere", "n ≫ d", "d ≫ n", "r ≫ d", "d ≫ r"}
"""Where exponents can be fitted: on the grid as it is, or where one size outweighs another; r: the neighbourhood."""

_VOCABULARY = 8  # of embeddings that nobody asks


@dataclass(frozen=True)
class Layer:
    """A row of Table 1.

    Attributes:
        name: of the row.
        paper: what is printed: `complexity`, `sequential`, `path`, each what stands in O(.).
        flops: where (`n ≫ d`) -> the exponents of n and d that are expected there.
        config: its own.
    """

    name: str
    paper: dict[str, str]
    flops: dict[str, dict[str, int]]
    config: DictConfig

    def build(self, width: int, device: str = "cpu", **changes: Any) -> nn.Module:
        """The layer, which takes (B, S, D) and a mask (B, S) to (B, S, D).

        Args:
            width: D.
            device: "meta" for shapes alone.
            changes: other values of `model`; those that this layer does not have are left out.

        Raises:
            UserError: a part refuses its sizes.
        """
        config = self.config.copy()
        config.model.d_model = width
        for key, value in changes.items():
            for part in (config.model, config.model.attention):
                if key in part:
                    part[key] = value
        with torch.device(device):
            made: nn.Module = build.model(resolve_valid(config), _VOCABULARY).encoder  # type: ignore[assignment]
        return made


def load_layers(overrides: Sequence[str] = ()) -> list[Layer]:
    """Every layer of `experiments/table1/layers.yaml`.

    Args:
        overrides: each changes the layers that have its key.

    Raises:
        UserError: no layer has a key, or it is what tells the layers apart; the file is not as it should be.
    """
    described = _read(find_file("experiments", "table1/layers.yaml"))
    bare = {name: compose([*_BARE, *row["overrides"]]) for name, row in described.items()}
    chosen = {_key(own) for row in described.values() for own in row["overrides"]} | {"model.d_model"}
    for override in overrides:
        key = _key(override)
        if key in chosen:
            way = "say --widths" if key == "model.d_model" else "a layer of your own is a row of layers.yaml"
            raise UserError(f"{key} is what the table varies: {way}")
    layers = []
    for name, row in described.items():
        takes = [one for one in overrides if _has(bare[name], one) or not any(_has(c, one) for c in bare.values())]
        config = compose([*_BARE, *row["overrides"], *takes]) if takes else bare[name]
        layers.append(Layer(name, row["paper"], row["flops"], config))
    return layers


def _read(file: Path) -> dict[str, Any]:
    """Name -> row of the file."""
    described = read_yaml(file)
    if not isinstance(described, dict) or not described:
        raise UserError(f"{file} names no layer: a row is NAME: with paper, overrides and flops below")
    for name, row in described.items():
        if not isinstance(row, dict) or row.keys() != {"paper", "overrides", "flops"}:
            raise UserError(f"{file}: {name} must have paper, overrides and flops, and nothing else")
        if row["paper"].keys() != {"complexity", "sequential", "path"}:
            raise UserError(f"{file}: {name}.paper must have complexity, sequential and path, and nothing else")
        if unknown := row["flops"].keys() - REGIMES:
            raise UserError(f"{file}: {name}.flops: {did_you_mean(unknown.pop(), REGIMES)}")
    return described


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def _has(config: DictConfig, override: str) -> bool:
    """Whether the override says something of this config: it chooses a group, or changes a value that is there."""
    parent, _, last = _key(override).rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    return "/" in override.partition("=")[0] or (isinstance(node, DictConfig) and last in node)
