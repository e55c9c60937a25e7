"""Parts of a model that cannot stand together, each told by name and with the override that mends it.

A class refuses such sizes by itself when it is built; here they are found before torch is imported. What a class of
your own cannot take, let its constructor say with a ValueError.
"""

from typing import Any

from omegaconf import DictConfig

from etude.errors import UserError


def check_combinations(config: DictConfig) -> None:
    """The rules that hold between the parts.

    Raises:
        UserError: the first rule that is broken.
    """
    for rule in _RULES:
        rule(config)


def _pairs_of_dimensions(config: DictConfig) -> None:
    d_k = at(config, "model.attention.d_k")
    if _is(config, "model.position", "Rotary") and d_k % 2:
        raise UserError(f"model/position=rope turns pairs of dimensions, and d_k={d_k} is odd: say model.d_k={d_k + 1}")


def _pairs_of_sinusoids(config: DictConfig) -> None:
    d_model = at(config, "model.position.d_model")
    if _is(config, "model.position", "Sinusoidal", "SinusoidalT2T") and d_model % 2:
        raise UserError(
            f"sinusoidal positions are pairs of sine and cosine, and d_model={d_model} is odd: "
            f"say model.d_model={d_model + 1}"
        )


def _groups_of_heads(config: DictConfig) -> None:
    heads, kv_heads = at(config, "model.attention.heads"), at(config, "model.attention.kv_heads")
    if kv_heads is not None and heads % kv_heads:
        nearest = max(number for number in range(1, min(heads, kv_heads) + 1) if heads % number == 0)
        raise UserError(
            f"model.attention.kv_heads={kv_heads} does not divide model.heads={heads}, so that each key head would "
            f"serve as many query heads: say model.attention.kv_heads={nearest}"
        )


def _halves_of_buckets(config: DictConfig) -> None:
    buckets = at(config, "model.position.buckets")
    if _is(config, "model.position", "T5") and buckets % 4:
        raise UserError(
            f"model/position=t5 halves its buckets twice, and {buckets} is no multiple of 4: "
            f"say model.position.buckets={buckets - buckets % 4}"
        )


def _norms_that_are_used(config: DictConfig) -> None:
    if _is(config, "model.residual", "ReZero") and not _is(config, "model.norm", "NoNorm"):
        raise UserError("model/residual=rezero stands in for every norm, and none would be used: say model/norm=none")


def _room_for_pieces(config: DictConfig) -> None:
    rows, pieces = at(config, "model.vocabulary"), at(config, "tokenizer.vocab_size")
    if rows is not None and pieces is not None and rows < pieces:
        raise UserError(
            f"model.vocabulary={rows} has no room for tokenizer.vocab_size={pieces}: say model.vocabulary={pieces}"
        )


_RULES = (
    _pairs_of_dimensions,
    _pairs_of_sinusoids,
    _groups_of_heads,
    _halves_of_buckets,
    _norms_that_are_used,
    _room_for_pieces,
)


def _is(config: DictConfig, part: str, *names: str) -> bool:
    """Whether the part is one of these classes of étude."""
    target = str(at(config, f"{part}._target_"))
    return target.startswith("etude.") and target.rpartition(".")[2] in names


def at(config: DictConfig, key: str) -> Any:
    """The value under a dotted key, None where there is none."""
    value: Any = config
    for name in key.split("."):
        value = value.get(name) if isinstance(value, DictConfig) else None
    return value
