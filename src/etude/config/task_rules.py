"""Which model suits which task of étude's, and which choice a model.

What a class of your own cannot do, its task finds out when it is built.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from etude.config.signature import signature
from etude.errors import UserError
from etude.studies.study import arm_names, load_study

_OF_AN_ENCODER = {"MaskedLanguageModelling", "Classification"}
_LANGUAGE_MODELS = {"LanguageModelling", "Agreement"}
_OF_A_DECODER = {"Translation", *_LANGUAGE_MODELS}


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
    unanswered = {*_OF_AN_ENCODER, "LanguageModelling"}
    for key, without in (("decoding", unanswered | _LANGUAGE_MODELS), ("metrics", unanswered)):
        if config[key] and task in without:
            raise UserError(f"{task} writes no text that could be searched for or compared: leave {key} out")
    if model == "EncoderDecoder" and task in _LANGUAGE_MODELS and encoder != "NoEncoder":
        raise UserError(f"{task} has no source for an encoder to read: say model/encoder=none")


def check_choices(config: Mapping[str, Any], typed: Sequence[str]) -> None:
    """See to it that the model has a use for each part that was chosen for it.

    Args:
        config: resolved, with its `choices`.
        typed: the overrides; those of an arm are looked up.

    Raises:
        UserError: it has none.
    """
    model, choices = config["model"], config["choices"]
    takes = signature(model["_target_"])
    arm = str(choices.get("experiment"))
    study, _, name = arm.partition("/")
    for override in [*(load_study(study).arms[name] if arm in arm_names() else ()), *typed]:
        group = override.lstrip("+").partition("=")[0]
        first, _, part = group.partition("/")
        key = part.partition("/")[0]
        if first != "model" or key not in model or choices.get(group) is None:
            continue
        if model[key] is None or not (key in takes.keywords or takes.open):
            raise UserError(
                f"{group}={choices[group]} is for a model that has such a part, and model={choices['model']} has none: "
                "leave it out, or choose another model"
            )


def _name(node: Mapping[str, Any] | None) -> str:
    """Of a class of étude's; of any other nothing."""
    target = str((node or {}).get("_target_"))
    return target.rpartition(".")[2] if target.startswith("etude.") else ""
