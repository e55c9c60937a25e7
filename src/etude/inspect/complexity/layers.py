"""One layer of each type, made of the parts that a config chooses."""

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

# One layer with its residual connection, without norm, dropout, feed-forward network and positions.
_BARE = [
    "scale=full",
    "model.n_layers=1",
    "model.dropout=0",
    *(f"model/{part}=none" for part in ("feedforward", "norm", "position")),
]
_KEYS = {"d": "model.d_model", "k": "model.encoder.kernel", "r": "model.attention.window"}
_VOCABULARY = 8  # the embeddings are built but not used


@dataclass(frozen=True)
class Layer:
    """A row of the study with its composed config.

    Attributes:
        row: the row, with its theoretical complexity.
        config: the composed config.
    """

    row: Row
    config: DictConfig

    def build(self, sizes: Mapping[str, int], device: str = "cpu", heads: int | None = None) -> nn.Module:
        """Build the layer, which maps (B, S, D) and a mask (B, S) to (B, S, D).

        Args:
            sizes: d, and k or r if the layer has one; sizes that it does not have are ignored.
            device: "meta" for shapes without values.
            heads: number of attention heads; None: as in the config.

        Raises:
            UserError: a part does not accept its sizes.
        """
        values = {_KEYS[symbol]: size for symbol, size in sizes.items() if symbol in self.row.symbols and symbol != "n"}
        if "r" in self.row.symbols:
            values[_KEYS["r"]] = sizes["r"] // 2  # `window` counts the positions on one side
        if heads is not None:
            values["model.heads"] = heads
        config = self.config.copy()
        for key, value in values.items():
            OmegaConf.update(config, key, value)
        with torch.device(device):
            made: nn.Module = build.model(resolve_valid(config), _VOCABULARY).encoder  # type: ignore[assignment]
        return made


def compose_layers(study: MeasuredStudy) -> list[Layer]:
    """Compose every layer of a study; an override of the command line applies to the layers that have its key.

    Raises:
        UserError: no layer has the key of an override, or the study itself varies it.
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
    """Tell whether an override applies to this config: it chooses a group, or its key exists there."""
    parent, _, last = override_key(override).rpartition(".")
    node = OmegaConf.select(config, parent) if parent else config
    return "/" in override.partition("=")[0] or (isinstance(node, DictConfig) and last in node)
