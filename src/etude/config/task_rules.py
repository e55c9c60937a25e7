"""Check that the model suits the task, and that the chosen parts suit the model.

This only covers étude's classes; a user's task finds out what its model lacks when it is built.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from etude.config.signature import signature
from etude.errors import UserError
from etude.study.arm_names import is_arm
from etude.study.arms import override_key
from etude.study.study import load_study

_LANGUAGE_MODELS = {"LanguageModelling", "Agreement"}
_DECODER_TASKS = {"Translation", *_LANGUAGE_MODELS}
_OTHER_SCORES = {"perplexity", "tokens", "sentences", "pairs", "accuracy", "bits_per_byte", "signature"}  # of a result


def check_task(config: Mapping[str, Any]) -> None:
    """Check that the task can use the model, the decoding and the metrics.

    Raises:
        UserError: it cannot.
    """
    task, model = class_name(config["task"]), class_name(config["model"])
    encoder = class_name(config["model"].get("encoder"))
    if model == "EncoderDecoder" and task == "MaskedLanguageModelling":
        raise UserError(f"{task} reads an encoder alone, and this model has a decoder: say model=encoder_only")
    if model == "EncoderOnly" and task in _DECODER_TASKS:
        raise UserError(f"{task} needs a decoder, which model=encoder_only has not: say model=base")
    textless = {"MaskedLanguageModelling", "LanguageModelling"}
    for key, without in (("decoding", textless | _LANGUAGE_MODELS), ("metrics", textless)):
        if config[key] and task in without:
            raise UserError(f"{task} writes no text that could be searched for or compared: leave {key} out")
    for name in config["metrics"] or ():
        if name in _OTHER_SCORES or name.endswith("_signature"):
            raise UserError(f"metrics.{name}: a result has another number of this name; choose another name")
    if task == "Translation" and not config["decoding"]:
        raise UserError("Translation is scored by what a search finds, and there is none: say decoding=greedy")
    if model == "EncoderDecoder" and task in _LANGUAGE_MODELS and encoder != "NoEncoder":
        raise UserError(f"{task} has no source for an encoder to read: say model/encoder=none")


def check_choices(config: Mapping[str, Any], typed: Sequence[str]) -> None:
    """Check that the model uses each part that was chosen for it.

    Args:
        config: the resolved config, with its `choices`.
        typed: the overrides; those of the chosen arm are added.

    Raises:
        UserError: a part is not used.
    """
    model, choices = config["model"], config["choices"]
    takes = signature(model["_target_"])
    arm = str(choices.get("experiment"))
    study, _, name = arm.partition("/")
    for override in [*(load_study(study).arms[name] if is_arm(arm) else ()), *typed]:
        group = override_key(override)
        first, _, part = group.partition("/")
        key = part.partition("/")[0]
        if first != "model" or key not in model or choices.get(group) is None:
            continue
        if model[key] is None or not (key in takes.keywords or takes.open):
            raise UserError(
                f"{group}={choices[group]} is for a model that has such a part, and model={choices['model']} has none: "
                "leave it out, or choose another model"
            )


def class_name(node: Any) -> str:
    """Return the name of the node's class if it is one of étude's, else ""."""
    target = str(node.get("_target_")) if isinstance(node, Mapping) else ""
    return target.rpartition(".")[2] if target.startswith("etude.") else ""
