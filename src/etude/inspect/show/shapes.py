"""What a model has, without building more than its shapes."""

from hydra.errors import InstantiationException
from hydra.utils import get_object

from etude.config.explain import explain
from etude.inspect.show.named import Config
from etude.tasks import build


def count_parameters(config: Config) -> int:
    """How many there are, shared ones counted once.

    Raises:
        UserError: the model cannot be built, or one of its classes not be imported.
    """
    try:
        return sum(weight.numel() for weight in build.shapes(config).parameters())
    except InstantiationException as error:
        raise explain(error) or error from error


def choices_by_module(config: Config) -> dict[type, str]:
    """Class -> the choice that it comes from, such as "model/position=rope"."""
    parts = {name: part["_target_"] for name, part in config["model"].items() if isinstance(part, dict)}
    choices = config["choices"]
    return {get_object(target): f"model/{name}={choices.get(f'model/{name}')}" for name, target in parts.items()}
