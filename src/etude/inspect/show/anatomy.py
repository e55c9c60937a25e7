"""The modules of a model as a tree with parameter counts; identical layers are folded into one node."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import get_object
from torch import nn

from etude.config.explain import explained
from etude.study.study import value_at
from etude.tasks import build


@dataclass(frozen=True)
class Node:
    """A module, or `times` consecutive modules that differ in their values only."""

    name: str
    kind: str  # its class
    choice: str  # the override that chose it, such as "model/position=rope"; else empty
    weights: tuple[str, ...]  # its own: "64×64", "bias 64"; shared ones: "as source_table"
    parameters: int  # of one of them, with its children; shared parameters count at their first occurrence
    children: tuple["Node", ...]
    times: int = 1


def count_parameters(config: dict[str, Any]) -> int:
    """Count the parameters of the model of a config, shared ones once.

    Raises:
        UserError: the model cannot be built, or one of its classes cannot be imported.
    """
    with explained(InstantiationException):
        return sum(weight.numel() for weight in build.shapes(config).parameters())


def choices_by_module(config: dict[str, Any]) -> dict[type, str]:
    """Map each class that a config chooses for the model to its choice, "model/position=rope", say, or its choices."""
    found: dict[type, str] = {}
    for group, value in config["choices"].items():
        target = value_at(config, f"{group.replace('/', '.')}._target_") if group.startswith("model/") else None
        if target:
            kind, choice = get_object(target), f"{group}={value}"
            found[kind] = f"{found[kind]} or {choice}" if kind in found else choice
    return found


def describe_modules(model: nn.Module, chosen: Mapping[type, str]) -> Node:
    """Describe the modules of `model` as a tree.

    Args:
        model: any module, possibly on the meta device.
        chosen: maps a class to the choice that it comes from.
    """
    return _Anatomist(chosen).node("", model)


class _Anatomist:
    """Builds nodes, and remembers the modules and parameters that it has seen, so that shared ones count once."""

    def __init__(self, chosen: Mapping[type, str]) -> None:
        self.chosen = chosen
        self.seen: dict[int, str] = {}  # id of a module or a parameter -> its path

    def node(self, path: str, module: nn.Module) -> Node:
        """Build the node of the module at `path`."""
        name, kind, choice = path.rpartition(".")[2], type(module).__name__, self.chosen.get(type(module), "")
        if id(module) in self.seen:
            first = self.seen[id(module)].removeprefix(path.removesuffix(name))  # for a sibling its name is enough
            return Node(name, kind, choice, (f"as {first}",), 0, ())
        self.seen[id(module)] = path
        weights, own = self._weights(path, module)
        children = _fold([self.node(f"{path}.{name}".lstrip("."), child) for name, child in _children(module)])
        parameters = own + sum(child.parameters * child.times for child in children)
        if isinstance(module, nn.ModuleList) and len(children) == 1:
            return replace(children[0], name=name)
        # Dropout, for one, has no content: no weights, and no override chose it.
        shown = tuple(child for child in children if child.choice or child.weights or child.children)
        return Node(name, kind, choice, weights, parameters, shown)

    def _weights(self, path: str, module: nn.Module) -> tuple[tuple[str, ...], int]:
        """Describe the module's own weights, and count their parameters."""
        descriptions, count = [], 0
        for name, weight in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(weight) in self.seen:
                descriptions.append(f"{name} as {self.seen[id(weight)]}")
            else:
                self.seen[id(weight)] = f"{path}.{name}"
                shape = "×".join(map(str, weight.shape)) or "1"
                descriptions.append(shape if name == "weight" else f"{name} {shape}")
                count += weight.numel()
        return tuple(descriptions), count


def _children(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the direct children with their names; a module with two names is yielded twice."""
    below = module.named_modules(remove_duplicate=False)
    return ((name, child) for name, child in below if name and "." not in name)


def _fold(nodes: Sequence[Node]) -> list[Node]:
    """Fold consecutive identical layers of a list into one node."""
    folded: list[Node] = []
    for node in nodes:
        last = folded[-1] if folded else None
        if node.name.isdigit() and last and replace(last, name=node.name, times=1) == node:
            first = last.name.partition("–")[0]
            folded[-1] = replace(last, name=f"{first}–{node.name}", times=last.times + 1)
        else:
            folded.append(node)
    return folded
