"""Read a W&B sweep file, and check that it can run without W&B."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.search.command import Command, read_command
from etude.study.arms import override_key
from etude.yaml_file import read_yaml

_KEY = re.compile(r"(\+\+?|~)?[\w@./-]+")
_OPTIONS = ("run_cap", "search_seed")
_IGNORED = {  # what W&B does with a key, and what happens here
    "early_terminate": "needs W&B's agents; here every run is trained to its end",
    "scheduler": "needs W&B's agents; here `method` alone chooses the values",
    "job": "needs W&B Launch; here étude trains the runs",
    "image_uri": "needs W&B Launch; here étude trains the runs",
}
_WITHOUT_EFFECT = ("apiVersion", "kind", "controller", "description", "entity", "name", "program", "project")
_KNOWN = ["method", "parameters", "command", "metric", *_OPTIONS, *_IGNORED, *_WITHOUT_EFFECT]
_METRIC = ("name", "goal", "target", "impute", "impute_while_running")

Parameters = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class WandbSweep:
    """The content of a sweep file.

    Attributes:
        file: its path.
        method: grid or random.
        parameters: what each key, written with dots, is set to or drawn from.
        command: what its `command` adds.
        options: its `run_cap` and `search_seed`, if it has them.
        metric: what to optimise, `name` and perhaps `goal`; empty if it does not say.
        ignored: a sentence on each key that only W&B can follow.
    """

    file: Path
    method: str
    parameters: Parameters
    command: Command
    options: dict[str, Any]
    metric: dict[str, Any]
    ignored: list[str]

    @property
    def fixed(self) -> Parameters:
        """The parameters that are not drawn: all of a grid, the constant ones of a random search."""
        return {key: node for key, node in self.parameters.items() if self.method == "grid" or "value" in node}

    @property
    def drawn(self) -> Parameters:
        """The parameters that are drawn."""
        return {key: node for key, node in self.parameters.items() if key not in self.fixed}


def read_sweep(file: Path) -> WandbSweep:
    """Read a sweep file.

    Raises:
        UserError: it is not a sweep file, it has a key that W&B does not know, or it needs W&B's agents.
    """
    content = read_yaml(file)
    if not isinstance(content, dict) or not isinstance(content.get("parameters"), dict) or not content["parameters"]:
        raise UserError(f"{file}: a sweep file needs parameters, such as  parameters: {{seed: {{values: [1, 2, 3]}}}}")
    for key in content:
        if key not in _KNOWN:
            raise UserError(f"{file}: {key} is not a key of a sweep file; {did_you_mean(str(key), _KNOWN)}")
    method = content.get("method")
    if method not in ("grid", "random"):
        raise UserError(f"{file}: method is {method!r}; without W&B's agents only grid and random can run")
    parameters: Parameters = {}
    for key, node in _flatten(file, content["parameters"]):
        if twice := [other for other in parameters if override_key(other) == override_key(key)]:
            raise UserError(f"{file}: parameters: {key} is there twice, as {twice[0]} too: leave one out")
        _check(f"{file}: parameters.{key}", key, node, method)
        parameters[key] = node
    metric = _metric(file, content.get("metric"))
    ignored = [f"{key} {why}" for key, why in _IGNORED.items() if key in content]
    if "target" in metric:
        ignored.append("metric.target needs W&B's agents; here a run that reaches it does not end the sweep")
    command = read_command(file, content["command"]) if content.get("command") else Command()
    options = {key: content[key] for key in _OPTIONS if key in content}
    return WandbSweep(file, method, parameters, command, options, metric, ignored)


def _flatten(file: Path, parameters: dict[Any, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every parameter with its dotted key: W&B nests them as {model: {parameters: {heads: ...}}}."""
    for name, node in parameters.items():
        if not isinstance(name, str) or not _KEY.fullmatch(name):
            raise UserError(f"{file}: parameters: {name!r} is not a config key")
        nested = node.get("parameters") if isinstance(node, dict) and len(node) == 1 else None
        if nested and isinstance(nested, dict):
            yield from _flatten(file, nested, f"{path}{name}.")
        else:
            yield path + name, node


def _check(where: str, key: str, parameter: Any, method: str) -> None:
    """Check how a parameter is described; what is drawn from a distribution is checked when it is drawn."""
    if not isinstance(parameter, dict) or {"value", "values"} <= set(parameter):
        raise UserError(f"{where} needs values: [...] or value: ...")
    values = parameter["values"] if "values" in parameter else [parameter.get("value")]
    if not isinstance(values, list) or not values:
        raise UserError(f"{where}.values must be a list of at least one value")
    if any(isinstance(value, dict) for value in (*values, *parameter.values())):
        raise UserError(f"{where} holds a mapping; write each of its keys as {key}.name")
    listed = "values" if "values" in parameter else "value" if "value" in parameter else ""
    if not listed and method == "grid":
        raise UserError(f"{where} needs values: [...] or value: ...; only method: random draws")
    known = [listed, "distribution", *(["probabilities"] if listed == "values" else [])]
    if listed and (other := [name for name in parameter if name not in known]):
        raise UserError(f"{where}: {other[0]} does not go with {listed}; {did_you_mean(str(other[0]), known)}")


def _metric(file: Path, metric: Any) -> dict[str, Any]:
    if metric is None:
        return {}
    if not isinstance(metric, dict) or not isinstance(metric.get("name"), str):
        raise UserError(f"{file}: metric needs a name, such as  metric: {{name: valid_perplexity, goal: minimize}}")
    for key in metric:
        if key not in _METRIC:
            raise UserError(f"{file}: metric.{key} is not a key of a metric; {did_you_mean(str(key), _METRIC)}")
    if metric.get("goal", "minimize") not in ("minimize", "maximize"):
        raise UserError(f"{file}: metric.goal is {metric['goal']!r}: write minimize or maximize")
    return metric
