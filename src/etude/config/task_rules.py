"""Which model suits which task of étude's. What a class of your own cannot do, its task finds out when it is built."""

from collections.abc import Mapping
from typing import Any

from etude.errors import UserError

_OF_AN_ENCODER = {"MaskedLanguageModelling", "Classification"}
_OF_A_DECODER = {"Translation", "LanguageModelling"}


def check_task(config: Mapping[str, Any]) -> None:
    """See to it that the model, and the search, are such as the task has a use for.

    Raises:
        UserError: they are not.
    """
    task, model = _name(config["task"]), _name(config["model"])
    encoder = _name(config["model"].get("encoder"))
    if model == "EncoderDecoder" and task in _OF_AN_ENCODER:
        raise UserError(f"{task} reads an encoder alone, and this model has a decoder: say model=encoder_only")
    if model == "EncoderOnly" and task in _OF_A_DECODER:
        raise UserError(f"{task} needs a decoder, which model=encoder_only has not: say model=base")
    if config["decoding"] and task in {*_OF_AN_ENCODER, "LanguageModelling"}:
        raise UserError(f"{task} translates nothing, so that there is nothing to search: leave decoding out")
    if model == "EncoderDecoder" and task == "LanguageModelling" and encoder != "NoEncoder":
        raise UserError(f"{task} has no source for an encoder to read: say model/encoder=none")


def _name(node: Mapping[str, Any] | None) -> str:
    """Of a class of étude's; of any other nothing."""
    target = str((node or {}).get("_target_"))
    return target.rpartition(".")[2] if target.startswith("etude.") else ""
