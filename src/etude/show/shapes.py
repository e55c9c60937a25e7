"""What a model has, without building more than its shapes."""

from hydra.utils import get_object

from etude import build
from etude.show.named import Config


def parameters(config: Config) -> int:
    """How many there are, shared ones counted once."""
    return sum(weight.numel() for weight in build.shapes(config).parameters())


def chosen(config: Config) -> dict[type, str]:
    """Class -> the choice that it comes from, such as "model/position=rope"."""
    parts = {name: part["_target_"] for name, part in config["model"].items() if isinstance(part, dict)}
    choices = config["choices"]
    return {get_object(target): f"model/{name}={choices.get(f'model/{name}')}" for name, target in parts.items()}
