"""The modules of a model as a tree, with what each one weighs; layers that are alike are told once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import get_object
from torch import nn

from etude.config.explain import explain
from etude.studies.study import value_at
from etude.tasks import build


@dataclass(frozen=True)
class Node:
    """A module, or `times` modules in a row that are alike but for their values."""

    name: str
    kind: str  # its class
    choice: str  # what chose it, such as "model/position=rope", or nothing
    weights: tuple[str, ...]  # its own: "64×64", "bias 64"; those told elsewhere: "as source_table"
    parameters: int  # of one of them, its children's included; what is shared counts where it stands first
    children: tuple["Node", ...]
    times: int = 1


def count_parameters(config: dict[str, Any]) -> int:
    """How many there are, shared ones counted once.

    Raises:
        UserError: the model cannot be built, or one of its classes not be imported.
    """
    try:
        return sum(weight.numel() for weight in build.shapes(config).parameters())
    except InstantiationException as error:
        raise explain(error) or error from error


def choices_by_module(config: dict[str, Any]) -> dict[type, str]:
    """Class -> the choice that it comes from, such as "model/position=rope"."""
    chosen = {group: value for group, value in config["choices"].items() if group.startswith("model/")}
    parts = {group: value_at(config, f"{group.replace('/', '.')}._target_") for group in chosen}
    return {get_object(target): f"{group}={chosen[group]}" for group, target in parts.items() if target}


def describe_modules(model: nn.Module, chosen: Mapping[type, str]) -> Node:
    """The tree of `model`, which may be on the meta device.

    Args:
        model: of any kind.
        chosen: class -> what chose it.
    """
    return _Anatomist(chosen).node("", model)


class _Anatomist:
    """Remembers what it has met, so that nothing shared is counted twice."""

    def __init__(self, chosen: Mapping[type, str]) -> None:
        self.chosen = chosen
        self.met: dict[int, str] = {}  # id of a module or a parameter -> its path

    def node(self, path: str, module: nn.Module) -> Node:
        """The node of the module that stands at `path`."""
        name, kind, choice = path.rpartition(".")[2], type(module).__name__, self.chosen.get(type(module), "")
        if id(module) in self.met:
            first = self.met[id(module)].removeprefix(path.removesuffix(name))  # of two side by side the name is enough
            return Node(name, kind, choice, (f"as {first}",), 0, ())
        self.met[id(module)] = path
        weights, own = self._weights(path, module)
        children = _fold([self.node(f"{path}.{name}".lstrip("."), child) for name, child in _children(module)])
        parameters = own + sum(child.parameters * child.times for child in children)
        if isinstance(module, nn.ModuleList) and len(children) == 1:
            return replace(children[0], name=name)
        return Node(name, kind, choice, weights, parameters, tuple(child for child in children if _tells(child)))

    def _weights(self, path: str, module: nn.Module) -> tuple[tuple[str, ...], int]:
        """The module's own weights in words, and how many parameters they are."""
        descriptions, count = [], 0
        for name, weight in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(weight) in self.met:
                descriptions.append(f"{name} as {self.met[id(weight)]}")
            else:
                self.met[id(weight)] = f"{path}.{name}"
                shape = "×".join(map(str, weight.shape)) or "1"
                descriptions.append(shape if name == "weight" else f"{name} {shape}")
                count += weight.numel()
        return tuple(descriptions), count


def _children(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules right below, those that stand twice included."""
    below = module.named_modules(remove_duplicate=False)
    return ((name, child) for name, child in below if name and "." not in name)


def _tells(node: Node) -> bool:
    """Dropout and the like hold nothing, and nobody chose them."""
    return bool(node.choice or node.weights or node.children)


def _fold(nodes: Sequence[Node]) -> list[Node]:
    """Of a list of layers, those in a row that are alike as one."""
    folded: list[Node] = []
    for node in nodes:
        last = folded[-1] if folded else None
        if node.name.isdigit() and last and replace(last, name=node.name, times=1) == node:
            first = last.name.partition("–")[0]
            folded[-1] = replace(last, name=f"{first}–{node.name}", times=last.times + 1)
        else:
            folded.append(node)
    return folded
