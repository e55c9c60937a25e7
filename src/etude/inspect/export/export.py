"""Export a trained run to a folder for CTranslate2, which needs neither étude nor PyTorch."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from etude.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from etude.errors import UserError
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.trained.load import load_trained

README = """# {run} for CTranslate2

{weights} weights, {subwords} subwords; `sentencepiece.model` turns text into subwords and back.

```python
import ctranslate2, sentencepiece
search = {options}
pieces, model = sentencepiece.SentencePieceProcessor("sentencepiece.model"), ctranslate2.Translator(".")
found = model.translate_batch([pieces.encode(" ".join("{example}".split()), out_type=str)], **search)
print(pieces.decode(found[0].hypotheses[0]))
```

With `beam_size=1` it finds what étude's greedy search finds. With more, CTranslate2 divides log P by n^length_penalty,
n the tokens of a translation, where étude and the paper divide by ((5 + n) / 6)^alpha: other hypotheses may win. A
translation ends after `max_decoding_length` tokens, however long the source; in étude after as many as the source has
and {max_len_offset} more. Padding and the start token are not generated, as in étude; their share of the
probability goes to the other tokens here.
"""

# A user's own search may lack these keys: the values are CTranslate2's.
_DEFAULTS = {"beam": 2, "alpha": 1, "max_len_offset": 50}


def export(run: RunDir, folder: Path, *, quantization: str | None) -> None:
    """Write a trained run for CTranslate2: model, vocabulary, sentencepiece model and a README.

    The folder is written atomically. CTranslate2's length penalty differs from the paper's, as the README explains.

    Args:
        run: a trained run.
        folder: the folder to write; it must not exist.
        quantization: CTranslate2's name for that of the weights; None: float32, as they were trained.

    Raises:
        UserError: ctranslate2 is missing, the folder exists, the run cannot be loaded, is of another task or has a part
            that CTranslate2 does not support, or the quantization is unknown.
    """
    try:
        from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES
    except ImportError as error:
        raise UserError("--ctranslate2 needs ctranslate2: pip install 'etude[ctranslate2]'") from error
    if quantization and quantization not in ACCEPTED_MODEL_TYPES:
        raise UserError(f"quantization={quantization} is unknown: choose one of {', '.join(ACCEPTED_MODEL_TYPES)}")
    if folder.exists():
        raise UserError(f"{folder} is there already: name another folder, or remove it")
    config, model, tokenizer = load_trained(run)
    build.task(config, "export")
    further = (_DEFAULTS | config["decoding"])["max_len_offset"]
    specification = convert(
        model.float(),  # CTranslate2 has no float64
        tokenizer,
        positions=config["budget"]["max_tokens"] + 1 + further,
        quantization=quantization,
    )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
            written = Path(place) / "model"
            written.mkdir()
            specification.save(str(written))
            shutil.copyfile(tokenizer.model_file, written / "sentencepiece.model")
            (written / "README.md").write_text(_readme(run, config, tokenizer, quantization), encoding="utf-8")
            written.replace(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}; choose another place") from error


def convert(model: nn.Module, tokenizer: Tokenizer, *, positions: int = 0, quantization: str | None = None) -> Any:
    """Convert a model and its vocabulary to a CTranslate2 specification, which can be saved to a folder.

    Raises:
        UserError: CTranslate2 does not support a part.
    """
    from etude.inspect.export.specification import specify

    specification = specify(model, positions)
    tokens = vocabulary(tokenizer, len(specification.decoder.embeddings.weight))
    specification.register_source_vocabulary(tokens)
    specification.register_target_vocabulary(tokens)
    config = specification.config
    config.unk_token, config.bos_token, config.eos_token = (tokens[token] for token in (UNK, BOS, EOS))
    config.decoder_start_token, config.add_source_eos = tokens[BOS], True
    specification.validate()
    specification.optimize(quantization=quantization)
    return specification


def vocabulary(tokenizer: Tokenizer, rows: int) -> list[str]:
    """List the subwords, and a unique name for each row that a model has beyond them (`model.vocabulary`)."""
    return [*tokenizer.subwords(range(len(tokenizer))), *(f"<row {n}>" for n in range(len(tokenizer), rows))]


def _readme(run: RunDir, config: dict[str, Any], tokenizer: Tokenizer, quantization: str | None) -> str:
    search, tokens = _DEFAULTS | config["decoding"], tokenizer.subwords([PAD, BOS])
    options = {
        "beam_size": search["beam"],
        "length_penalty": search["alpha"],
        "max_input_length": config["budget"]["max_tokens"] + 1,  # the end token is counted there
        "min_decoding_length": 0,
        "max_decoding_length": config["budget"]["max_tokens"] + search["max_len_offset"],
        "suppress_sequences": [[token] for token in tokens],
    }
    return README.format(
        run=run.path.name,
        weights=quantization or "float32",
        subwords=len(tokenizer),
        example="A line of text .",
        options=options,
        max_len_offset=search["max_len_offset"],
    )
