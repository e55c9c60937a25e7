"""Begin a training with the weights of another run, or of a file (`init_from`): those of the same name and shape."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from etude.data.splits import SIDES
from etude.data.tokenizer import Tokenizer
from etude.data.vocabularies import SPECIAL, open_tokenizer, open_two
from etude.errors import UserError
from etude.files import typed_path, write_json
from etude.model.embedding import ClusteredTable
from etude.model.position import Position
from etude.store.parent import find_parent, is_file
from etude.store.provenance import notes_on_code
from etude.store.run_dir import RunDir
from etude.trained.checkpoint import hash_weights
from etude.trained.load import no_weights
from etude.trained.weights import final_weights

Weights = Mapping[str, Tensor]

log = logging.getLogger(__name__)


def take_weights(model: nn.Module, init_from: Mapping[str, Any], tokenizer: Tokenizer, written: Path | None) -> None:
    """Give a model the weights of its parent that have the same name and shape; the others keep their initial values.

    Args:
        model: with its initial weights.
        init_from: the section of the resolved config.
        tokenizer: of the text that the model is trained on.
        written: the file that gets the list of what was taken and what was not; None for none.

    Raises:
        UserError: the parent has changed or has no weights, none of them fits, or its vocabulary is another one.
    """
    path = init_from["run"]
    if find_parent(init_from) != init_from:
        raise UserError(f"init_from={path} has changed since this run was launched: launch it again")
    weights, vocabulary = _read_file(typed_path(path)) if is_file(path) else _read_run(path)
    own = model.state_dict()
    taken = {name: value for name, value in weights.items() if name in own and value.shape == own[name].shape}
    in_part: dict[str, str] = {}
    if init_from["vocabulary"] == "adapt":
        if vocabulary is None:
            raise UserError(f"init_from={path}: adapt compares subwords, and there is no sentencepiece.model beside it")
        if any(isinstance(part, ClusteredTable) for part in model.modules()):
            raise UserError(
                f"init_from={path}: adapt takes rows of whole tables, and this model has its tokens in clusters: "
                "say model/tying=all, or leave init_from.vocabulary out"
            )
        for name in _tables(model, len(tokenizer)) & weights.keys():
            if weights[name].shape[1:] == own[name].shape[1:]:
                side = "source" if "source" in name else "target"
                rows = _shared(*(_subwords(getattr(one, side)) for one in (tokenizer, vocabulary)))
                taken[name] = own[name].clone()
                taken[name][[mine for mine, _ in rows]] = weights[name][[its for _, its in rows]].to(own[name])
                in_part[name] = f"{len(rows)} of {len(own[name])} rows"
    elif vocabulary and any(
        _subwords(getattr(vocabulary, side)) != _subwords(getattr(tokenizer, side)) for side in SIDES
    ):
        own_file = f", tokenizer=existing tokenizer.file={vocabulary.model_file} keeps its own"
        raise UserError(
            f"init_from={path} has other subwords than this text: 'init_from={{run:{path},vocabulary:adapt}}' takes "
            f"the rows of those that both have{own_file * (vocabulary.source is vocabulary.target)}"
        )
    elif vocabulary is None and _tables(model, len(tokenizer)) & taken.keys():
        log.warning(
            "init_from: no sentencepiece.model lies beside %s, which would tell whether its subwords are these", path
        )
    if not taken:
        raise UserError(
            f"init_from={path}: none of its {len(weights)} weights has the name and shape of one of this model"
        )
    model.load_state_dict(taken, strict=False)
    others = {
        name: f"is {_shape(own[name])} here, {_shape(weights[name])} there" if name in weights else "is not there"
        for name in own
        if name not in taken
    }
    left_over = [name for name in weights if name not in own]
    log.info("init_from: %d of %d weights are those of %s", len(taken), len(own), path)
    for name, how in (in_part | others).items():
        log.info("init_from: %s %s", name, f"in part, {how}" if name in in_part else f"keeps its initial values: {how}")
    if written:
        whole = [name for name in taken if name not in in_part]
        found = {"taken": whole, "in_part": in_part, "not_taken": others, "left_over": left_over}
        write_json(written, {**init_from, "weights": hash_weights(weights), **found})


def _read_run(path: str) -> tuple[Weights, Tokenizer]:
    run = RunDir.at(path)
    if not run.checkpoint.is_file():
        raise no_weights(run)
    for note in notes_on_code([run.result()]):
        log.warning("init_from=%s: %s", path, note)
    return final_weights(run, run.config()), open_tokenizer(run.tokenizer_file)


def _read_file(file: Path) -> tuple[Weights, Tokenizer | None]:
    """Read a file in the format safetensors, and the subwords that `etude export` writes beside it."""
    try:
        weights = load_file(file)
    except (SafetensorError, OSError) as error:
        raise UserError(f"init_from={file} is not a whole file of safetensors ({error}): name another") from error
    return weights, _vocabulary_beside(file)


def _vocabulary_beside(file: Path) -> Tokenizer | None:
    one = [f for name in ("sentencepiece.model", "tokenizer.model") if (f := file.with_name(name)).is_file()]
    two = [file.with_name(f"sentencepiece.{side}.model") for side in SIDES]
    if one:
        return open_tokenizer(one[0])
    return open_two(*two) if all(model.is_file() for model in two) else None


def _tables(model: nn.Module, subwords: int) -> set[str]:
    """Return the names of the weights that have a row for each of so many subwords; rows of positions are none."""
    modules = dict(model.named_modules(remove_duplicate=False))
    apart = tuple(f"{name}." for name, one in modules.items() if isinstance(one, Position))
    tables = {name: one for name, one in modules.items() if isinstance(one, nn.Embedding)}
    large = [name for name, one in tables.items() if one.num_embeddings >= subwords]
    return {f"{name}.weight" for name in large if not name.startswith(apart)}


def _subwords(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.subwords(range(len(tokenizer)))


def _shared(own: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    """Return the tokens of the subwords that stand once in both vocabularies, in either, and those of étude's own."""
    counts = Counter(own), Counter(theirs)
    there = {subword: token for token, subword in enumerate(theirs)}
    once = [(mine, subword) for mine, subword in enumerate(own) if all(count[subword] == 1 for count in counts)]
    both = [(mine, there[subword]) for mine, subword in once if mine >= SPECIAL]
    return [(token, token) for token in range(SPECIAL)] + both


def _shape(value: Tensor) -> str:
    return " x ".join(map(str, value.shape))
