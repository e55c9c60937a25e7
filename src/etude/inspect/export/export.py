"""A trained run as a folder that CTranslate2 translates from, without étude and without PyTorch."""

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


def export(run: RunDir, folder: Path, *, quantization: str | None) -> None:
    """Write a trained run for CTranslate2: model, vocabulary, sentencepiece model and a README.

    The folder appears whole or not at all. CTranslate2's length penalty is not the paper's, which the README says.

    Args:
        run: trained.
        folder: to be written; it must not be there.
        quantization: of the weights, as CTranslate2 calls it; None: float32, as they were trained.

    Raises:
        UserError: ctranslate2 is missing, the folder is there, the run cannot be loaded, is of another task or has a
            part that CTranslate2 cannot hold, or there is no such quantization.
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
    made = convert(model, tokenizer, quantization=quantization)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
            written = Path(place) / "model"
            written.mkdir()
            made.save(str(written))
            shutil.copyfile(tokenizer.model_file, written / "sentencepiece.model")
            (written / "README.md").write_text(_readme(run, config, tokenizer, quantization), encoding="utf-8")
            written.replace(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}; choose another place") from error


def convert(model: nn.Module, tokenizer: Tokenizer, *, quantization: str | None = None) -> Any:
    """A model and its subwords as CTranslate2's specification, to be saved into a folder.

    Raises:
        UserError: a part is not among what CTranslate2 can hold.
    """
    from etude.inspect.export.specification import specify

    made = specify(model)
    tokens = vocabulary(tokenizer, len(made.decoder.embeddings.weight))
    made.register_source_vocabulary(tokens)
    made.register_target_vocabulary(tokens)
    made.config.unk_token, made.config.bos_token, made.config.eos_token = tokens[UNK], tokens[BOS], tokens[EOS]
    made.config.decoder_start_token, made.config.add_source_eos = tokens[BOS], True
    made.validate()
    made.optimize(quantization=quantization)
    return made


def vocabulary(tokenizer: Tokenizer, rows: int) -> list[str]:
    """The subwords, and a name for each row that a model has beyond them (`model.vocabulary`); none twice."""
    return [*tokenizer.subwords(range(len(tokenizer))), *(f"<row {n}>" for n in range(len(tokenizer), rows))]


def _readme(run: RunDir, config: dict[str, Any], tokenizer: Tokenizer, quantization: str | None) -> str:
    # A search of one's own may have none of these: then as CTranslate2 does if nothing is said.
    search, tokens = {"beam": 2, "alpha": 1, "max_len_offset": 50} | config["decoding"], tokenizer.subwords([PAD, BOS])
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
