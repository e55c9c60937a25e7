"""One layer of each kind, made of the parts that a config chooses."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn

from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.errors import UserError
from etude.studies.arms import override_key
from etude.studies.measured import MeasuredStudy, Row
from etude.tasks import build

# A layer and nothing around it but its residual connection.
_BARE = [
    "scale=full",
    "model.n_layers=1",
    "model.dropout=0",
    *(f"model/{part}=none" for part in ("feedforward", "norm", "position")),
]
_KEYS = {"d": "model.d_model", "k": "model.encoder.kernel", "r": "model.attention.window"}
_VOCABULARY = 8  # of embeddings that nobody asks


@dataclass(frozen=True)
class Layer:
    """A row of the study, composed.

    Attributes:
        row: what theory says of it.
        config: its own.
    """

    row: Row
    config: DictConfig

    def build(self, sizes: Mapping[str, int], device: str = "cpu", heads: int | None = None) -> nn.Module:
        """The layer, which takes (B, S, D) and a mask (B, S) to (B, S, D).

        Args:
            sizes: d, and k or r where it has one; others say nothing of it.
            device: "meta" for shapes alone.
            heads: of attention, where not as many as its config says.

        Raises:
            UserError: a part refuses its sizes.
        """
        values = {_KEYS[symbol]: size for symbol, size in sizes.items() if symbol in self.row.symbols and symbol != "n"}
        if "r" in self.row.symbols:
            values[_KEYS["r"]] = sizes["r"] // 2  # a window is to one side
        if heads is not None:
            values["model.heads"] = heads
        config = self.config.copy()
        for key, value in values.items():
            OmegaConf.update(config, key, value)
        with torch.device(device):
            made: nn.Module = build.model(resolve_valid(config), _VOCABULARY).encoder  # type: ignore[assignment]
        return made


def compose_layers(study: MeasuredStudy) -> list[Layer]:
    """Every layer of a study; what was typed changes those that have its key.

    Raises:
        UserError: no layer has a key, or it is what tells the layers apart.
    """
    bare = {row.name: compose([*_BARE, *row.overrides]) for row in study.rows}
    own = {override_key(override) for row in study.rows for override in row.overrides}
    varied = {key: symbol for symbol, key in _KEYS.items()}
    for override in study.overrides:
        if (key := override_key(override)) in own | varied.keys():
            way = f"say {varied[key]}=" if key in varied else "a layer of your own is a row of study.yaml"
            raise UserError(f"{key} is what the table varies: {way}")
    nowhere = [one for one in study.overrides if not any(_has(config, one) for config in bare.values())]
    layers = []
    for row in study.rows:
        takes = [one for one in study.overrides if one in nowhere or _has(bare[row.name], one)]
        layers.append(Layer(row, compose([*_BARE, *row.overrides, *takes]) if takes else bare[row.name]))
    return layers


def _has(config: DictConfig, override: str) -> bool:
    """Whether the override says something of this config: it chooses a group, or changes a value that is there."""
    parent, _, last = override_key(override).rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    return "/" in override.partition("=")[0] or (isinstance(node, DictConfig) and last in node)
