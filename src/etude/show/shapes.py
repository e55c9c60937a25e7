"""A model that has shapes and no memory."""

from hydra.utils import get_object

from etude import build
from etude.errors import UserError
from etude.model.transformer import Transformer
from etude.show.named import Config


def shapes(config: Config) -> Transformer:
    """The model of the config on the meta device.

    Raises:
        UserError: a part refuses its sizes, or the config is older than the code and lacks a key.
    """
    try:
        return build.shapes(config)
    except KeyError as error:
        raise UserError(f"the model of this run has no {error}, which today's code needs: train it again") from error


def parameters(config: Config) -> int:
    """How many there are, shared ones counted once."""
    return sum(weight.numel() for weight in shapes(config).parameters())


def chosen(config: Config) -> dict[type, str]:
    """Class -> the choice that it comes from, such as "model/position=rope"."""
    parts = {name: part["_target_"] for name, part in config["model"].items() if isinstance(part, dict)}
    choices = config["choices"]
    return {get_object(target): f"model/{name}={choices.get(f'model/{name}')}" for name, target in parts.items()}
