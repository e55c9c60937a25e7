"""`etude export`: a folder from which another program computes what the run computes."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch
from torch import Tensor

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.trained.load import load_trained
from etude.trained.run import load
from etude.training.run import train

TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "BOOL": np.bool_}
TINY = ["model.d_model=8", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "trainer=cpu", "logger=none"]
TEXT = ["data.train_pairs=300", "data.valid_pairs=20", "data.test_pairs=20", "data.vocab_size=300"]
SMOKE = ["budget=smoke", "budget.max_steps=2", "decoding=greedy", "decoding.max_len_offset=2", "callbacks=ema"]


def read_safetensors(file: Path) -> dict[str, Tensor]:
    """Read the format as it is described: 8 bytes, little-endian, of a JSON header's length, the header, the values."""
    content = file.read_bytes()
    [length] = struct.unpack("<Q", content[:8])
    header, values = json.loads(content[8 : 8 + length]), content[8 + length :]
    assert (8 + length) % 8 == 0
    assert sum(end - start for start, end in (one["data_offsets"] for one in header.values())) == len(values)
    return {
        name: torch.from_numpy(
            np.frombuffer(values[slice(*one["data_offsets"])], TYPES[one["dtype"]]).reshape(one["shape"]).copy()
        )
        for name, one in header.items()
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    place = tmp_path_factory.mktemp("place")
    made = freeze(compose([*TINY, *TEXT, *SMOKE, f"runs_dir={place / 'runs'}", f"cache_dir={place / 'cache'}"]))
    train(made)
    return made


def etude(*words: str) -> int | str | None:
    """The exit status."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return end.value.code


def test_the_folder_holds_the_weights_that_are_tested_the_config_and_the_subwords(run: RunDir, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "made"
    assert etude("export", str(run.path), str(folder)) == 0
    config, pieces = json.loads((folder / "config.json").read_text()), sentencepiece.SentencePieceProcessor()
    assert pieces.Load(str(folder / "sentencepiece.model"))
    model = build.model(config, len(pieces))
    model.load_state_dict(read_safetensors(folder / "model.safetensors"))
    _, ours, tokenizer = load_trained(run)
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), ours.parameters(), strict=True))
    assert config == run.config()
    assert len(pieces) == len(tokenizer)


def test_a_file_holds_the_weights_alone(run: RunDir, tmp_path: Path) -> None:
    assert etude("export", str(run.path), str(tmp_path / "new" / "it.safetensors")) == 0
    found, ours = read_safetensors(tmp_path / "new" / "it.safetensors"), load(run.path).state_dict()
    assert found.keys() == ours.keys()
    assert all(torch.equal(found[name], weight) for name, weight in ours.items())
    assert [*(tmp_path / "new").iterdir()] == [tmp_path / "new" / "it.safetensors"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name one run and a folder to write"),
        (["there"], "there is there already: name another folder"),
        (["new", "--to", "onnx"], "etude export takes no --to"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(words, told, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert etude("export", str(run.path), *words) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
