"""Export a trained model for other programs: weights, or a folder with config and subwords, which need no étude."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from etude.data.tokenizer import Tokenizer
from etude.errors import UserError
from etude.files import replacing

SUFFIX = ".safetensors"


def export(place: Path, config: dict[str, Any], model: nn.Module, tokenizer: Tokenizer) -> None:
    """Write a model, atomically: a file if its name ends in `.safetensors`, else a new folder.

    The folder holds `model.safetensors`, `config.json` and `sentencepiece.model`, or one of source and one of target.

    Raises:
        UserError: the place exists or cannot be written.
    """
    if place.exists():
        kind = "file" if place.suffix == SUFFIX else "folder"
        raise UserError(f"{place} is there already: name another {kind}, or remove it")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.suffix == SUFFIX:
            with replacing(place) as temporary:
                _write(temporary, model.state_dict())
            return
        with TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
            written = Path(folder) / "model"
            written.mkdir()
            _write(written / f"model{SUFFIX}", model.state_dict())
            (written / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
            if tokenizer.source is tokenizer.target:
                shutil.copyfile(tokenizer.model_file, written / "sentencepiece.model")
            else:
                for side, one in (("source", tokenizer.source), ("target", tokenizer.target)):
                    (written / f"sentencepiece.{side}.model").write_bytes(one.serialized())
            written.replace(place)
    except OSError as error:
        raise UserError(f"cannot write {place}: {error.strerror or error}; choose another place") from error


def _write(file: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors by their names, each whole: those that share memory, as tied matrices do, too."""
    save_file({name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}, file)
