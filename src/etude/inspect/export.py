"""Export a trained run to a folder for other programs: weights, config and subwords, which need no étude to be read."""

import json
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from etude.errors import UserError
from etude.store.run_dir import RunDir
from etude.trained.load import load_trained

_DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.bool: "BOOL"}


def export(run: RunDir, folder: Path) -> None:
    """Write `model.safetensors`, `config.json` and `sentencepiece.model` of a trained run to a new folder, atomically.

    Raises:
        UserError: the folder exists or cannot be written, or the run cannot be loaded.
    """
    if folder.exists():
        raise UserError(f"{folder} is there already: name another folder, or remove it")
    config, model, tokenizer = load_trained(run)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
            written = Path(place) / "model"
            written.mkdir()
            write_safetensors(written / "model.safetensors", model.state_dict())
            (written / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
            shutil.copyfile(tokenizer.model_file, written / "sentencepiece.model")
            written.replace(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}; choose another place") from error


def write_safetensors(file: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors in the format safetensors: the length of a JSON header in 8 bytes, the header, the values."""
    header, start = {}, 0
    for name, tensor in tensors.items():
        end = start + tensor.nbytes
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": [*tensor.shape], "data_offsets": [start, end]}
        start = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)  # so that the values are aligned
    with file.open("wb") as out:
        out.write(struct.pack("<Q", len(head)) + head)
        for tensor in tensors.values():
            out.write(tensor.cpu().numpy().tobytes())
